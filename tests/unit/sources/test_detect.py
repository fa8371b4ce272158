"""Which command runs a project's tests."""

import pytest

from loopctl.sources.detect import detect

CASES = [
    ({"pyproject.toml": "[tool.pytest.ini_options]\n"}, "python -m pytest -q"),
    (
        {"pyproject.toml": "[project]\n", "tests/test_a.py": "def test_a(): ...\n"},
        "python -m pytest -q",
    ),
    (
        {"tests/test_a.py": "import unittest\n"},
        "python -m unittest discover -s 'tests' -t . -p '*test*.py'",
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
