"""Which command runs a project's tests, told from the project's files alone: pure."""

import json
import re
from collections.abc import Callable, Collection
from dataclasses import dataclass
from typing import Final

Read = Callable[[str], bytes | None]
"""A file of the tree by its path; ``None`` where there is none."""

_PYTEST_SECTION: Final = {
    "pyproject.toml": re.compile(r"^\[tool\.pytest\b", re.MULTILINE),
    "setup.cfg": re.compile(r"^\[tool:pytest\]", re.MULTILINE),
    "tox.ini": re.compile(r"^\[pytest\]", re.MULTILINE),
}
_TEST_FILE: Final = re.compile(r"(.*/)?(test_[^/]*|[^/]*_test)\.py")
_USES_PYTEST: Final = re.compile(r"^\s*(import|from) pytest\b|^(async )?def test", re.MULTILINE)
_USES_UNITTEST: Final = re.compile(r"^\s*(import|from) unittest\b", re.MULTILINE)
_TEST_TARGET: Final = re.compile(r"^test\s*:(?!=)", re.MULTILINE)
_PLACEHOLDER: Final = "no test specified"


@dataclass(frozen=True, slots=True)
class Found:
    """A command that runs the tests.

    Attributes:
        command: For ``sh -c`` at the root of the tree.
        because: The file that says so, for the user.
    """

    command: str
    because: str


def detect(paths: Collection[str], read: Read) -> Found | None:
    """Return the command that runs the tests of a tree; ``None`` where nothing tells.

    Args:
        paths: The regular files of the tree, relative to its root.
        read: Reads one of them.
    """
    known = frozenset(paths)
    for look in (_python, _node, _cargo, _go, _make):
        found = look(known, read)
        if found is not None:
            return found
    return None


def _text(read: Read, path: str) -> str:
    return (read(path) or b"").decode("utf-8", "replace")


def _python(paths: frozenset[str], read: Read) -> Found | None:
    for name in ("pytest.ini", ".pytest.ini", "pytest.toml"):
        if name in paths:
            return Found("python -m pytest -q", name)
    for name, section in _PYTEST_SECTION.items():
        if name in paths and section.search(_text(read, name)):
            return Found("python -m pytest -q", name)
    tests = sorted(path for path in paths if _TEST_FILE.fullmatch(path))
    texts = {path: _text(read, path) for path in tests}
    for path, text in texts.items():
        if _USES_PYTEST.search(text):
            return Found("python -m pytest -q", path)
    for path, text in texts.items():
        if _USES_UNITTEST.search(text):
            where = path.split("/", maxsplit=1)[0] if "/" in path else "."
            return Found(f"python -m unittest discover -s '{where}' -t . -p '*test*.py'", path)
    return None


def _node(paths: frozenset[str], read: Read) -> Found | None:
    if "package.json" not in paths:
        return None
    try:
        script = json.loads(_text(read, "package.json"))["scripts"]["test"]
    except (ValueError, KeyError, TypeError):
        return None
    if not isinstance(script, str) or not script.strip() or _PLACEHOLDER in script:
        return None
    return Found("npm test", "package.json")


def _cargo(paths: frozenset[str], read: Read) -> Found | None:
    del read
    return Found("cargo test", "Cargo.toml") if "Cargo.toml" in paths else None


def _go(paths: frozenset[str], read: Read) -> Found | None:
    del read
    return Found("go test ./...", "go.mod") if "go.mod" in paths else None


def _make(paths: frozenset[str], read: Read) -> Found | None:
    for name in ("GNUmakefile", "makefile", "Makefile"):
        if name in paths:
            is_there = _TEST_TARGET.search(_text(read, name)) is not None
            return Found("make test", name) if is_there else None
    return None
