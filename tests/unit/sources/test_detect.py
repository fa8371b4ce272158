"""Which command runs a project's tests."""

import pytest

from loopctl.sources.detect import detect

UNITTEST = "import unittest\n"
CASES = [
    ({"pyproject.toml": "[tool.pytest.ini_options]\n"}, "python -m pytest -q"),
    (
        {"pyproject.toml": "[project]\n", "tests/test_a.py": "def test_a(): ...\n"},
        "python -m pytest -q",
    ),
    (
        {"tests/test_a.py": "import unittest\n"},
        "python -m unittest discover -s tests -p '*test*.py'",
    ),
    (
        {"tests/__init__.py": "", "tests/a/__init__.py": "", "tests/a/test_a.py": UNITTEST},
        "python -m unittest discover -s tests -t . -p '*test*.py'",
    ),
    (
        {"src/p/__init__.py": "", "src/p/test_a.py": UNITTEST, "it's/test_b.py": UNITTEST},
        (
            "python -m unittest discover -s 'it'\"'\"'s' -p '*test*.py'"
            " && python -m unittest discover -s src/p -t src -p '*test*.py'"
        ),
    ),
    (
        {"test_a.py": UNITTEST, "tests/__init__.py": "", "tests/test_b.py": UNITTEST},
        "python -m unittest discover -s . -p '*test*.py'",
    ),
    ({"package.json": '{"scripts": {"test": "node --test"}}'}, "npm test"),
    ({"Cargo.toml": ""}, "cargo test"),
    ({"go.mod": ""}, "go test ./..."),
    ({"Makefile": "all:\n\ntest: all\n\ttrue\n"}, "make test"),
]


def _detect(files: dict[str, str]) -> str | None:
    found = detect(files, lambda path: files[path].encode() if path in files else None)
    return found.command if found else None


@pytest.mark.parametrize(("files", "command"), CASES)
def test_each_ecosystem_is_told_from_its_files(files: dict[str, str], command: str) -> None:
    assert _detect(files) == command


@pytest.mark.parametrize(
    "files",
    [
        {},
        {"README.md": "x"},
        {"package.json": '{"scripts": {"test": "echo \\"Error: no test specified\\" && exit 1"}}'},
        {"package.json": "[broken"},
        {"package.json": "[]"},
        {"Makefile": "test := 3\nlatest:\n"},
    ],
)
def test_no_command_is_made_up_where_nothing_tells(files: dict[str, str]) -> None:
    assert _detect(files) is None
