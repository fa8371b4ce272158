import tomllib
from collections.abc import Iterator
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from loopctl.tomlsource.scan import Path, Places

EVERYTHING = r'''# a comment with "quotes" and [brackets]
schema = 1 # trailing
[goal]
text = """two ""quotes"", an escaped \""" and two at the end"""""
other = """a
[[task]]
id = "not a header"
# not a comment ' """
literal = @@@no \ escapes, '' two of them, two at the end@@@''
done_when = [ # a comment ] in a list
  { check = "a]b}c" }, # another
  { criterion = 'it is' } ,
]
when = 1979-05-27 07:32:00
day = 1979-05-27
at = 07:32:00
far = -1.5e+10
[[task]]
  id = 'T1'
  budget.usd = 1.5
  "st\u0061tus" = "todo"
  'quoted key' = true
[task.nested]
y = [[1, 2], [{ a = [3] }]]
[[task.options]]
name = "a"
[[task.options]]
name = "b"
[[ "task" ]]
id = "T2"
budget = { tokens = 1, deep.er = 2, empty = {}, list = [] }
'''.replace("@@@", "'" * 3)


def leaves(value: Any, path: Path = ()) -> Iterator[tuple[Path, Any]]:
    if isinstance(value, dict):
        for key, inner in value.items():
            yield from leaves(inner, (*path, key))
    elif isinstance(value, list):
        for index, inner in enumerate(value):
            yield from leaves(inner, (*path, index))
    else:
        yield path, value


def assert_every_value_is_where_it_says(text: str) -> None:
    places = Places(text)
    for path, value in leaves(tomllib.loads(text)):
        place = places.find(path)
        assert place is not None, path
        assert place.value is not None, path
        start, end = place.value
        assert tomllib.loads(f"v = {text[start:end]}")["v"] == value, path


@pytest.mark.parametrize("ending", ["\n", "\r\n"])
def test_every_value_of_a_document_with_all_of_toml_is_found(ending: str) -> None:
    assert_every_value_is_where_it_says(EVERYTHING.replace("\n", ending))


def test_lines_are_those_of_an_editor() -> None:
    places = Places(EVERYTHING)
    lines = EVERYTHING.split("\n")
    assert lines[places.line(("task", 0, "id")) - 1] == "  id = 'T1'"
    assert lines[places.line(("task", 0, "options", 1, "name")) - 1] == 'name = "b"'
    assert lines[places.line(("goal", "done_when", 1)) - 1] == "  { criterion = 'it is' } ,"
    assert lines[places.line(("task", 0, "budget")) - 1] == "  budget.usd = 1.5"


def test_a_missing_key_has_the_line_of_the_table_around_it() -> None:
    places = Places(EVERYTHING)
    header = EVERYTHING.split("\n").index('[[ "task" ]]') + 1
    assert places.line(("task", 1, "title")) == header
    assert places.line(("task", 1, "deps", 3)) == header
    assert places.line(("nowhere",)) == 0
    assert places.line(()) == 0


BLANKS = st.sampled_from(["", " ", "\t", "  "])
LINES = st.sampled_from(["", "\n", "# a comment = [x] \"'\n", "\n\n  # \U0001f600\n"])
KEYS = st.sampled_from(["a", "b-c", "d_1", '"q k"', "'l.k'", '"\\u00e9"', "2"])


def basic(text: str) -> str:
    return '"' + "".join(c if c.isalnum() else f"\\U{ord(c):08x}" for c in text) + '"'


TEXTS = st.text(st.characters(exclude_categories=["Cs"]), max_size=5)
PLAIN = st.sampled_from(["1", "-2.5", "true", "0x1F", "inf", "1979-05-27T07:32:00Z", "07:32:00"])
STRINGS = st.one_of(
    TEXTS.map(basic),
    st.text("ab#[]{}=,\" '\n\\", max_size=8)
    .filter(lambda t: "'''" not in t)
    .map(lambda t: f"'''{t}'''"),
    st.sampled_from(['"""a ""b"""""', "''", '""', '""""""', "''''''", '"\\""', "'#'"]),
)


@st.composite
def values(draw: st.DrawFn, depth: int = 2) -> str:
    kind = draw(st.integers(0, 3 if depth else 1))
    if kind == 0:
        return draw(PLAIN)
    if kind == 1:
        return draw(STRINGS)
    if kind == 2:
        parts = draw(st.lists(values(depth - 1), max_size=3))
        comma = draw(LINES) + "," + draw(LINES)
        return "[" + draw(LINES) + comma.join(parts) + draw(LINES) + "]"
    keys = draw(st.lists(KEYS, unique=True, max_size=3))
    pairs = [f"{key}{draw(BLANKS)}={draw(BLANKS)}{draw(values(depth - 1))}" for key in keys]
    return "{" + draw(BLANKS) + ", ".join(pairs) + draw(BLANKS) + "}"


@st.composite
def documents(draw: st.DrawFn) -> str:
    text = draw(LINES)
    headers = draw(st.lists(st.sampled_from(["", "[[t]]", "[[ t ]]", "[t.x]", "[[t.y]]"])))
    for header in ["[[t]]", *headers]:
        text += draw(BLANKS) + header + "\n"
        for key in draw(st.lists(KEYS, unique=True, max_size=3)):
            text += f"{draw(BLANKS)}{key}{draw(BLANKS)}={draw(BLANKS)}{draw(values())}"
            text += draw(st.sampled_from(["\n", " # c\n", "\n\n"]))
    return text


@given(documents())
def test_every_value_of_a_random_document_is_found(text: str) -> None:
    try:
        tomllib.loads(text)
    except ValueError:
        return
    assert_every_value_is_where_it_says(text)


def test_what_is_no_toml_is_refused_and_not_looped_over() -> None:
    for text in ("=", "a", "a =", "[", "a = [1", "a = {b", '"', "a = [,]]"):
        with pytest.raises(ValueError, match=r"no TOML|Invalid|Unclosed|Expected"):
            Places(text).find(("never",))
