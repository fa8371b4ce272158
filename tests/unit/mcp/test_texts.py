import unicodedata

from hypothesis import given
from hypothesis import strategies as st

from loopctl.sandbox.mcp.texts import Secrets, ending, one_line, printable


@given(st.text(), st.integers(1, 50))
def test_a_text_is_printable_and_no_longer_than_allowed(text: str, limit: int) -> None:
    shown = printable(text, limit)
    assert len(shown) <= limit
    assert all(char in "\n\t" or unicodedata.category(char)[0] != "C" for char in shown)
    assert "\n" not in one_line(text, limit)


@given(st.text(alphabet="abc äöü\n\t.,"))
def test_ordinary_text_stays_as_it_is(text: str) -> None:
    assert printable(text, len(text) + 1) == text


def test_the_end_of_a_long_text_is_kept() -> None:
    assert ending("one\ntwo  three", 100) == "one two three"
    assert ending("x" * 100 + " end", 10) == "…xxxxx end"


def test_the_value_of_a_variable_is_shown_as_its_name() -> None:
    secrets = Secrets([("SHORT", "abc"), ("KEY", "secret-key"), ("LONG", "secret-key-2")])
    assert secrets.hide("abc secret-key-2 secret-keys") == "abc [LONG] [KEY]s"
