from collections.abc import Mapping

import pytest

from loopctl.judges.checkers import find


@pytest.mark.parametrize(
    ("files", "runs"),
    [
        ({"mypy.ini": "[mypy]\n"}, "mypy"),
        ({".mypy.ini": "[mypy]\n"}, "mypy"),
        ({"pyproject.toml": "[tool.mypy]\n"}, "mypy"),
        ({"setup.cfg": "[mypy]\n"}, "mypy"),
        ({"pyrightconfig.json": "{}"}, "pyright"),
        ({"pyproject.toml": "[tool.pyright]\n"}, "pyright"),
        ({"ty.toml": ""}, "ty check"),
        ({"pyproject.toml": "[tool.ty]\n"}, "ty check"),
        ({"tsconfig.json": "{}"}, "tsc --noEmit"),
        ({"Cargo.toml": ""}, "cargo check"),
        ({"go.mod": ""}, "go vet ./..."),
        ({"pyproject.toml": "[tool.mypy]\n", "tsconfig.json": "{}"}, "mypy"),
    ],
)
def test_checker_is_found_by_the_projects_files(files: Mapping[str, str], runs: str) -> None:
    command = find(files.get)
    assert command is not None
    assert f" {runs}" in f" {command}"


@pytest.mark.parametrize(
    "files",
    [
        {},
        {"pyproject.toml": "[project]\n"},
        {"pyproject.toml": "[tool"},
        {"pyproject.toml": "tool = 3"},
        {"setup.cfg": "[metadata]\n"},
        {"setup.cfg": "no section"},
        {"package.json": "{}"},
    ],
)
def test_project_without_a_checker_has_none(files: Mapping[str, str]) -> None:
    assert find(files.get) is None


@pytest.mark.parametrize(
    ("settings", "is_given"), [("[mypy]\nfiles = src\n", False), ("[mypy]\n", True)]
)
def test_mypy_is_given_the_whole_tree_where_its_settings_name_no_files(
    settings: str, *, is_given: bool
) -> None:
    command = find({"mypy.ini": settings}.get)
    assert command is not None
    assert command.endswith(" .") is is_given
