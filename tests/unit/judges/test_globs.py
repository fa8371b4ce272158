import pytest
from hypothesis import given
from hypothesis import strategies as st

from loopctl.judges.globs import Match, match, matches_any

PATH, BELOW, NONE = Match.PATH, Match.BELOW, Match.NONE


@pytest.mark.parametrize(
    ("glob", "path", "expected"),
    [
        ("tests/**", "tests/a.py", BELOW),
        ("tests/**", "tests/deep/a.py", BELOW),
        ("tests/**", "tests", NONE),
        ("tests/**", "src/tests/a.py", NONE),
        ("tests/**", "tests2/a.py", NONE),
        ("tests/", "src/tests/a.py", BELOW),
        ("tests", "tests", PATH),
        ("tests", "src/tests/a.py", BELOW),
        ("/tests", "src/tests/a.py", NONE),
        ("/tests", "tests/a.py", BELOW),
        ("**/conftest.py", "conftest.py", PATH),
        ("**/conftest.py", "a/b/conftest.py", PATH),
        ("**/conftest.py", "a/conftest.pyc", NONE),
        ("*.py", "a/b/c.py", PATH),
        ("src/*.py", "src/a.py", PATH),
        ("src/*.py", "src/a/b.py", NONE),
        ("src/**/b.py", "src/b.py", PATH),
        ("src/**/b.py", "src/a/x/b.py", PATH),
        ("src/**/b/**", "src/x/b/c", BELOW),
        ("**", "any/thing", PATH),
        ("**/", "any/thing", PATH),
        ("a?c", "abc", PATH),
        ("a?c", "a/c", NONE),
        ("[ab].py", "b.py", PATH),
        ("[!ab].py", "c.py", PATH),
        ("[!ab].py", "b.py", NONE),
        ("a[!x]c", "a/c", NONE),
        ("[]].py", "].py", PATH),
        ("[ab", "[ab", PATH),
        ("[z-a]", "z", NONE),
        ("a.c", "abc", NONE),
        ("A.py", "a.py", NONE),
        ("", "a", NONE),
        ("/", "a", NONE),
        ("./a/b", "a/b", PATH),
        ("a+b(c).py", "a+b(c).py", PATH),
        ("*.py", "a\nb.py", PATH),
    ],
)
def test_glob_matches_as_its_rules_say(glob: str, path: str, expected: Match) -> None:
    assert match(glob, path) is expected


_NAMES = st.text("ab.*", min_size=1, max_size=3)


def _matches(glob: list[str], path: list[str]) -> bool:
    """Say by plain recursion whether components match."""
    if not glob:
        return not path
    if glob[0] == "**":
        return any(_matches(glob[1:], path[count:]) for count in range(len(path) + 1))
    return bool(path) and _names_match(glob[0], path[0]) and _matches(glob[1:], path[1:])


def _names_match(glob: str, name: str) -> bool:
    if not glob:
        return not name
    if glob[0] == "*":
        return any(_names_match(glob[1:], name[count:]) for count in range(len(name) + 1))
    return bool(name) and glob[0] == name[0] and _names_match(glob[1:], name[1:])


@given(
    st.lists(_NAMES | st.just("**"), min_size=1, max_size=4),
    st.lists(st.text("ab.", min_size=1, max_size=3).filter(lambda n: n != "."), max_size=5),
)
def test_matcher_agrees_with_plain_recursion(glob: list[str], path: list[str]) -> None:
    glob = [part for part in glob if part != "."]
    if not glob or not path or glob[-1] == "**":
        return
    expected = any(_matches(glob, path[:count]) for count in range(1, len(path) + 1))
    assert (match("/" + "/".join(glob), "/".join(path)) is not NONE) == expected


@given(st.text(max_size=20), st.text(max_size=20))
def test_no_glob_breaks_the_matcher(glob: str, path: str) -> None:
    matches_any([glob], path)
