"""Which command runs a project's tests, told from the project's files alone: pure."""

import json
import posixpath
import re
import shlex
from collections.abc import Callable, Collection, Iterator, Sequence
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
_PYTEST: Final = ("pytest -q",)
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


def detect(paths: Collection[str], read: Read, *, python: str = "python") -> Found | None:
    """Return the command that runs the tests of a tree; ``None`` where nothing tells.

    Args:
        paths: The regular files of the tree, relative to its root.
        read: Reads one of them.
        python: What Python is called here.
    """
    known = frozenset(paths)
    modules, because = _python(known, read)
    if modules:
        return Found(" && ".join(f"{python} -m {words}" for words in modules), because)
    for look in (_node, _cargo, _go, _make):
        found = look(known, read)
        if found is not None:
            return found
    return None


def _text(read: Read, path: str) -> str:
    return (read(path) or b"").decode("utf-8", "replace")


def _python(paths: frozenset[str], read: Read) -> tuple[Sequence[str], str]:
    """Return which modules Python is to run, with their arguments, and the file that says so."""
    for name in ("pytest.ini", ".pytest.ini", "pytest.toml"):
        if name in paths:
            return _PYTEST, name
    for name, section in _PYTEST_SECTION.items():
        if name in paths and section.search(_text(read, name)):
            return _PYTEST, name
    tests = sorted(path for path in paths if _TEST_FILE.fullmatch(path))
    texts = {path: _text(read, path) for path in tests}
    for path, text in texts.items():
        if _USES_PYTEST.search(text):
            return _PYTEST, path
    mine = [path for path, text in texts.items() if _USES_UNITTEST.search(text)]
    return tuple(_discoveries(mine, paths)), next(iter(mine), "")


def _discoveries(tests: Sequence[str], paths: frozenset[str]) -> Iterator[str]:
    """Yield how unittest finds each of the test files, which it looks for in packages alone."""
    starts: dict[str, str] = {}
    for path in tests:
        start = posixpath.dirname(path)
        is_package = False
        while start and f"{start}/__init__.py" in paths:
            is_package, above = True, posixpath.dirname(start)
            if f"{above}/__init__.py" not in paths:
                break
            start = above
        top = (posixpath.dirname(start) or ".") if is_package else ""
        starts[start or "."] = top
    for start, top in starts.items():
        # What lies in packages is found from the root as well, where that is looked through.
        if start != "." and top == "." and "." in starts:
            continue
        of_top = f" -t {shlex.quote(top)}" if top else ""
        yield f"unittest discover -s {shlex.quote(start)}{of_top} -p '*test*.py'"


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
