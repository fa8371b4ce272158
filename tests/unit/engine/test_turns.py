"""The past grows by one turn a step, at its end, and by no more than a turn may hold."""

from hypothesis import given
from hypothesis import strategies as st

from loopctl.engine.turns import cut, has_begun, remembered
from loopctl.past import TURN_BYTES, Past, Summary, Turn


def test_step_is_remembered_under_its_iteration() -> None:
    past = Past(summaries=(Summary(1, 2, "before"),))
    past = remembered(remembered(past, 3, "one"), 4, "two")
    assert past == Past((Summary(1, 2, "before"),), (Turn(3, "one"), Turn(4, "two")))


def test_turn_that_was_shown_stays_as_it_was_when_its_iteration_goes_on() -> None:
    past = remembered(remembered(Past(), 1, "planned"), 1, "did")
    assert past.turns == (Turn(1, "planned"), Turn(1, "did"))
    assert has_begun(past, 1)
    assert not has_begun(past, 2)
    assert not has_begun(Past(), 1)


def test_step_without_words_leaves_no_turn() -> None:
    assert remembered(Past(), 1, "") == Past()


def test_long_turn_loses_its_middle_and_says_so() -> None:
    text = cut("a" * 5000 + "b" * 5000)
    assert text.startswith("a" * 2000)
    assert text.endswith("b" * 2000)
    assert "[…]" in text


@given(st.text(), st.integers(0, 5000), st.text())
def test_no_turn_is_longer_than_it_may_be_and_a_short_one_is_untouched(
    start: str, times: int, end: str
) -> None:
    text = start + "ä☕😀" * times + end
    size = len(text.encode())
    kept = cut(text)
    assert len(kept.encode()) <= TURN_BYTES
    assert (kept == text) is (size <= TURN_BYTES)


def test_bytes_that_are_no_text_do_not_break_a_turn() -> None:
    assert cut("caf\udce9") == "caf\udce9"
    assert len(cut("\udce9" * 4000).encode("utf-8", "surrogatepass")) <= TURN_BYTES
