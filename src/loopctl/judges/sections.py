"""The parts of shared configuration files that decide what a check finds.

``pyproject.toml``, ``setup.cfg`` and ``package.json`` hold much that a task may change; only
their test, type, lint and coverage parts are compared between base and candidate.
"""

import configparser
import json
import re
import tomllib
from collections.abc import Callable, Mapping
from typing import Any, Final

Sections = Mapping[str, Any]

_PYPROJECT_TOOLS: Final = frozenset(
    {
        *("basedpyright", "bandit", "coverage", "flake8", "hatch", "mypy", "nox", "poe"),
        *("pylint", "pyrefly", "pyright", "pytest", "pytype", "ruff", "taskipy", "tox", "ty"),
    }
)
_CFG_SECTION: Final = re.compile(
    r"(tool:)?pytest|aliases|(mypy|pylint|flake8|coverage|tox|pycodestyle|testenv)([-:.].*)?"
)
LIMIT: Final = 1 << 20
"""A guarded file with more bytes than this is refused: its end could not be compared."""

_NPM_SCRIPT: Final = re.compile(r"(pre|post)?(test|lint|typecheck|type-check|check|coverage)(:.*)?")
_NPM_TOOLS: Final = ("ava", "c8", "eslintConfig", "jest", "mocha", "nyc", "tap", "vitest")


def guarded(name: str, content: bytes | None, scripts: frozenset[str] = frozenset()) -> Sections:
    """Return the guarded parts of the file called ``name``; none where there is no file.

    Args:
        name: One of :data:`READERS`.
        content: Of the file.
        scripts: Of a ``package.json``, which are guarded besides those that check by their names.

    Raises:
        ValueError: The file cannot be read as what it is.
    """
    if content is None:
        return {}
    try:
        text = _text(content)
        return {**READERS[name](text), **_scripts(name, text, scripts)}
    except (configparser.Error, RecursionError) as exc:
        raise ValueError(str(exc)) from exc


def settings_table(content: bytes | None) -> Any:
    """Return ``[tool.loopctl]`` of a ``pyproject.toml``, ``None`` where it has none.

    Raises:
        ValueError: It is no TOML.
    """
    if content is None:
        return None
    try:
        return _table(tomllib.loads(_text(content)), "tool").get("loopctl")
    except RecursionError as exc:
        raise ValueError("nested too deeply") from exc


def differing(base: Sections, now: Sections) -> tuple[str, ...]:
    """Return the names of the parts that are not the same in both."""
    return tuple(sorted(key for key in {*base, *now} if base.get(key) != now.get(key)))


def _text(content: bytes) -> str:
    if len(content) > LIMIT:
        raise ValueError(f"it has more than {LIMIT} bytes")
    return content.decode("utf-8-sig")


def _table(parent: Mapping[str, Any], key: str) -> Mapping[str, Any]:
    found = parent.get(key)
    return found if isinstance(found, dict) else {}


def _pyproject(text: str) -> Sections:
    document = tomllib.loads(text)
    found = {
        f"tool.{name}": value
        for name, value in _table(document, "tool").items()
        if name in _PYPROJECT_TOOLS
    }
    plugins = _table(_table(document, "project"), "entry-points").get("pytest11")
    if plugins is not None:
        found["project.entry-points.pytest11"] = plugins
    return found


def _setup_cfg(text: str) -> Sections:
    parser = configparser.RawConfigParser(strict=False, default_section="\0")
    parser.read_string(text)
    found: dict[str, Any] = {
        name: dict(parser.items(name)) for name in parser.sections() if _CFG_SECTION.fullmatch(name)
    }
    if parser.has_option("options.entry_points", "pytest11"):
        found["options.entry_points"] = parser.get("options.entry_points", "pytest11")
    return found


def _scripts(name: str, text: str, scripts: frozenset[str]) -> Sections:
    if name != "package.json" or not scripts:
        return {}
    found = _table(json.loads(text), "scripts")
    return {f"scripts.{key}": command for key, command in found.items() if key in scripts}


def _package_json(text: str) -> Sections:
    document = json.loads(text)
    if not isinstance(document, dict):
        raise ValueError("it holds no object")  # noqa: TRY004 - the file is wrong, no argument
    found = {name: document[name] for name in _NPM_TOOLS if name in document}
    for name, command in _table(document, "scripts").items():
        if _NPM_SCRIPT.fullmatch(name):
            found[f"scripts.{name}"] = command
    return found


READERS: Final[Mapping[str, Callable[[str], Sections]]] = {
    "pyproject.toml": _pyproject,
    "setup.cfg": _setup_cfg,
    "package.json": _package_json,
}
"""The files that are compared by their parts, by name, anywhere in the tree."""
