import pytest
from hypothesis import given
from hypothesis import strategies as st

from loopctl.judges.sections import LIMIT, READERS, differing, guarded, settings_table


@pytest.mark.parametrize(
    ("name", "text", "parts"),
    [
        ("pyproject.toml", "[tool.pytest]\na = 1\n[tool.black]\n", {"tool.pytest"}),
        (
            "pyproject.toml",
            "[tool.coverage.run]\n[tool.ruff.lint]\n",
            {"tool.coverage", "tool.ruff"},
        ),
        (
            "pyproject.toml",
            "[project.entry-points.pytest11]\nx = 'y'\n",
            {"project.entry-points.pytest11"},
        ),
        ("pyproject.toml", "tool = 1\n", set()),
        ("setup.cfg", "[tool:pytest]\n[flake8]\n[metadata]\n", {"tool:pytest", "flake8"}),
        ("setup.cfg", "[mypy-x.*]\n[coverage:run]\n", {"mypy-x.*", "coverage:run"}),
        ("setup.cfg", "[DEFAULT]\nx = 1\n", set()),
        (
            "setup.cfg",
            "[options.entry_points]\npytest11 =\n  x = y\n",
            {"options.entry_points"},
        ),
        ("package.json", '{"jest": {}, "main": "x"}', {"jest"}),
        ("package.json", '{"scripts": {"pretest": "a", "start": "b"}}', {"scripts.pretest"}),
    ],
)
def test_guarded_parts_are_found(name: str, text: str, parts: set[str]) -> None:
    assert set(guarded(name, text.encode())) == parts


def test_missing_file_has_no_guarded_parts() -> None:
    assert guarded("pyproject.toml", None) == {}
    assert settings_table(None) is None


def test_changed_added_and_removed_parts_are_named() -> None:
    assert differing({"a": 1, "b": 2, "c": 3}, {"a": 1, "b": 3, "d": 4}) == ("b", "c", "d")


@pytest.mark.parametrize(
    ("name", "content"),
    [
        ("pyproject.toml", b"[tool"),
        ("pyproject.toml", b"\xff"),
        ("pyproject.toml", b"#" * (LIMIT + 1)),
        ("pyproject.toml", b"x = " + b"[" * 20000),
        ("setup.cfg", b"no section"),
        ("package.json", b"[]"),
        ("package.json", b"{"),
        ("package.json", b"[" * 100000),
    ],
)
def test_file_that_cannot_be_read_says_so(name: str, content: bytes) -> None:
    with pytest.raises(ValueError, match=r".+"):
        guarded(name, content)


@given(st.sampled_from(sorted(READERS)), st.binary())
def test_no_content_breaks_the_readers_otherwise(name: str, content: bytes) -> None:
    try:
        guarded(name, content)
    except ValueError:
        return
