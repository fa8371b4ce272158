import pytest
from hypothesis import given
from hypothesis import strategies as st

from loopctl.judges.paths import link_fault, mode_fault, nesting_fault, path_fault
from loopctl.trees import Change, ChangeType


@pytest.mark.parametrize(
    "path",
    ["a", "a/b.c", ".github/x", ".gitignore", ".gitattributes", "git", "a.git", ".gitx", "git~x",
     "...", "a b", "-x", "caf\udce9", "ünï", "a\\b", "c:", "gitmodules", "😀"],
)  # fmt: skip
def test_ordinary_path_is_accepted(path: str) -> None:
    assert path_fault(path) == ""


@pytest.mark.parametrize(
    "path",
    ["", "/etc/passwd", "C:/x", "c:\\x", "../x", "a/../b", "a//b", "a/", "./a", "a/./b", "..",
     ".git", "a/.git", ".git/config", ".GIT/x", ".Git", ".g\u200cit", ".git\u200d", "\ufeff.git",
     ".gi\u202et", ".git.", ".git ", ".git. .", "git~1", "GIT~12/x", ".git:x", ".git::$DATA",
     "a\\.git", "a\\..\\b", ".gitmodules", ".GITMODULES", "gitmod~1", "GI7EBA~1", ".gitmodules ",
     "a\0b", "a\nb", "a\tb", "a\x7f", "a\x1b[1m", "a\u202eb", "a\u2066b", "a\x85b",
     "n" * 256, "é" * 128, "/".join(["n" * 200] * 21)],
)  # fmt: skip
def test_path_that_no_result_may_hold_is_refused(path: str) -> None:
    assert path_fault(path)


@given(st.text())
def test_no_path_breaks_the_rules(path: str) -> None:
    fault = path_fault(path)
    parts = path.split("/")
    if not fault:
        assert not {"", ".", ".."} & set(parts)
        assert all(part.casefold() != ".git" for part in parts)


@pytest.mark.parametrize(
    ("path", "target", "is_fine"),
    [
        ("a", b"b", True),
        ("a/b", b"../c", True),
        ("a/b/c", b"../../d", True),
        ("a/b", b"./c/d", True),
        ("a", b"caf\xe9", True),
        ("a", b"..b", True),
        ("a", b"../b", False),
        ("a/b", b"../../c", False),
        ("a/b", b"c/../d", False),
        ("a/b", b"/c", False),
        ("a/b", b"\\\\server\\x", False),
        ("a/b", b"C:x", False),
        ("a/b", b"", False),
        ("a/b", b"c\0d", False),
        ("a/b", b"../.git", False),
        ("a/b", b"../.GIT/config", False),
        ("a/b", b"git~1", False),
        ("a/b", b"x" * 5000, False),
    ],
)
def test_link_stays_inside_the_tree(path: str, target: bytes, *, is_fine: bool) -> None:
    assert (link_fault(path, target) == "") is is_fine


def _change(path: str, old: str = "000000", new: str = "100644") -> Change:
    return Change(path, ChangeType.ADDED, old, new, "0" * 40, "1" * 40)


@pytest.mark.parametrize(
    ("old", "new", "is_fine"),
    [
        ("000000", "100644", True),
        ("100644", "100755", True),
        ("100644", "000000", True),
        ("000000", "120000", True),
        ("000000", "160000", False),
        ("160000", "000000", False),
        ("000000", "104755", False),
        ("000000", "100666", False),
        ("000000", "040000", False),
    ],
)
def test_only_plain_modes_can_land(old: str, new: str, *, is_fine: bool) -> None:
    assert (mode_fault(_change("a", old, new)) == "") is is_fine


def test_paths_must_fit_beside_each_other() -> None:
    gone = _change("a", "100644", "000000")
    assert nesting_fault((gone, _change("a/b"))) is None
    assert nesting_fault((_change("a"), _change("ab/c"))) is None
    below = nesting_fault((_change("a", new="120000"), _change("a/b/c")))
    assert below is not None
    assert below[0] == "a/b/c"
    twice = nesting_fault((_change("a"), _change("a")))
    assert twice is not None
    assert twice[0] == "a"
