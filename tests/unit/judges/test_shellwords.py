import pytest
from hypothesis import given
from hypothesis import strategies as st

from loopctl.judges.shellwords import is_only_pytest, runs_pytest, runs_unittest

PYTESTS = [
    "pytest",
    "py.test -q",
    "./.venv/bin/pytest tests",
    "python -m pytest -q",
    "/usr/bin/python3.11 -m pytest",
    "python -X dev -W error -m pytest",
    "python -bm pytest",
    "python3 -mpytest",
    "env X=Y pytest",
    "X=Y Z='a b' pytest",
    "env -u X pytest",
    "cd src && pytest",
    "ruff check . && python -m pytest",
    "uv run pytest",
    "uv run --with x --frozen pytest -q",
    "uv run python -m pytest",
    "poetry run pytest",
    "hatch run pytest",
    "uvx pytest",
    "coverage run -m pytest",
    "coverage run --branch -m pytest -q",
    "python -m coverage run -m pytest",
    "timeout 60 pytest",
    "timeout -s KILL 60 pytest",
    "exec pytest",
    "nice -n 5 pytest",
    "sh -c 'cd x && pytest -q'",
    "bash -lc 'pytest'",
    "set -e\npytest -q",
    "(cd x; pytest)",
    "if ! pytest; then exit 1; fi",
    "pytest -k 'a and b' | tee log",
    "pytest \\\n  -q",
]
OTHERS = [
    "",
    "make test",
    "npm test",
    "tox",
    "nox -s pytest",
    "echo pytest",
    "pip install pytest",
    "which pytest",
    "command -v pytest",
    "python -m unittest",
    "python pytest_runner.py",
    "docker run image pytest",
    "ruff check pytest",
    "grep -r pytest .",
    "echo 'pytest && pytest'",
    "sh run_pytest.sh",
    "uv sync",
    "pytest-watch",
    "'unclosed pytest",
]


@pytest.mark.parametrize("command", PYTESTS)
def test_pytest_is_recognised(command: str) -> None:
    assert runs_pytest(command)


@pytest.mark.parametrize("command", OTHERS)
def test_other_command_is_not_taken_for_pytest(command: str) -> None:
    assert not runs_pytest(command)


@pytest.mark.parametrize(
    ("command", "is_one"),
    [
        ("python -m unittest", True),
        ("python3.12 -B -m unittest discover -s tests", True),
        ("cd x && env A=b uv run python -m unittest tests.test_a", True),
        ("sh -c 'python -m unittest'", True),
        ("coverage run -m unittest", True),
        ("python -m pytest", False),
        ("python unittest.py", False),
        ("echo python -m unittest", False),
        ("make unittest", False),
    ],
)
def test_unittest_is_told_from_others(command: str, *, is_one: bool) -> None:
    assert runs_unittest(command) is is_one


@pytest.mark.parametrize(
    ("command", "is_only"),
    [
        ("pytest -q", True),
        ("cd x && X=1 pytest -k 'a;b|c'", True),
        ("ruff check . && pytest 2>&1", True),
        ("pytest && ruff check .", False),
        ("pytest; true", False),
        ("pytest || true", False),
        ("pytest | tee log", False),
        ("pytest &", False),
        ("pytest $(cat args)", False),
        ("pytest `cat args`", False),
        ("pytest a && pytest b", False),
        ("make test", False),
        ("pytest\ntrue", False),
    ],
)
def test_exit_code_is_pytests_own(command: str, *, is_only: bool) -> None:
    assert is_only_pytest(command) is is_only


@given(st.text())
def test_no_command_breaks_the_reader(command: str) -> None:
    runs_pytest(command)
    is_only_pytest(command)
