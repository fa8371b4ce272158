"""The type checkers that ``auto`` knows: how each is recognised and run."""

import tomllib
from collections.abc import Callable
from configparser import Error, RawConfigParser
from typing import Any, Final

ReadText = Callable[[str], str | None]
"""A file of the base by its path; ``None`` where there is none or it is no text."""

_LOCAL: Final = 'PATH="$PWD/.venv/bin:$PWD/node_modules/.bin:$PATH" '
_MYPY: Final = "mypy --no-pretty --no-color-output --no-error-summary --hide-error-context"
_MYPY_TARGETS: Final = ("files", "packages", "modules")


def find(read: ReadText) -> str | None:
    """Return the command of the first checker that the base's files configure.

    Args:
        read: Reads a file of the base: what a candidate says of its checker does not count.

    Returns:
        ``None`` where the project configures none.
    """
    pyproject = _tool_tables(read("pyproject.toml"))
    if (mypy := _mypy(read, pyproject)) is not None:
        return _LOCAL + mypy
    if read("pyrightconfig.json") is not None or "pyright" in pyproject:
        return f"{_LOCAL}pyright"
    if read("ty.toml") is not None or "ty" in pyproject:
        return f"{_LOCAL}ty check --output-format concise"
    if read("tsconfig.json") is not None:
        return f"{_LOCAL}tsc --noEmit --pretty false"
    if read("Cargo.toml") is not None:
        return "cargo check --quiet --color never --message-format short"
    if read("go.mod") is not None:
        return "go vet ./..."
    return None


def _tool_tables(text: str | None) -> dict[str, Any]:
    try:
        tool = tomllib.loads(text or "").get("tool")
    except (ValueError, RecursionError):
        return {}
    return tool if isinstance(tool, dict) else {}


def _mypy(read: ReadText, pyproject: dict[str, Any]) -> str | None:
    """Return mypy's command where it is configured; its own order of files is followed."""
    for name in ("mypy.ini", ".mypy.ini"):
        if (text := read(name)) is not None:
            return _mypy_on(_ini_section(text) or {})
    if isinstance(table := pyproject.get("mypy"), dict):
        return _mypy_on(table)
    section = _ini_section(read("setup.cfg") or "")
    return None if section is None else _mypy_on(section)


def _mypy_on(section: dict[str, Any]) -> str:
    has_targets = any(name in section for name in _MYPY_TARGETS)
    return _MYPY if has_targets else f"{_MYPY} ."


def _ini_section(text: str) -> dict[str, str] | None:
    parser = RawConfigParser(strict=False)
    try:
        parser.read_string(text)
    except Error:
        return None
    return dict(parser.items("mypy")) if parser.has_section("mypy") else None
