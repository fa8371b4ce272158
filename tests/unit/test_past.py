import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from loopctl.past import Past, Summary, Turn, decode_past, encode_past

# Whatever a command may have said: NUL, control characters, lone surrogates.
texts = st.text(max_size=60)
numbers = st.integers(0, (1 << 63) - 1)
pasts = st.builds(
    Past,
    summaries=st.lists(st.builds(Summary, numbers, numbers, texts), max_size=4).map(tuple),
    turns=st.lists(st.builds(Turn, numbers, texts), max_size=4).map(tuple),
)


def _dumped(past: Past) -> bytes:
    text = json.dumps(encode_past(past), ensure_ascii=False, separators=(",", ":"))
    return text.encode("utf-8", "surrogatepass")


@given(pasts)
def test_past_survives_a_round_trip_through_json(past: Past) -> None:
    assert decode_past(json.loads(_dumped(past).decode("utf-8", "surrogatepass"))) == past


@given(pasts)
def test_encoded_past_stays_within_the_bound_that_is_promised(past: Past) -> None:
    entries = len(past.summaries) + len(past.turns)
    assert len(_dumped(past)) <= 6 * past.size_bytes + 64 * entries + 64


def test_prose_is_carried_at_about_its_own_size() -> None:
    past = Past(turns=tuple(Turn(n, "Ran the tests; two of them fail. " * 100) for n in range(9)))
    assert len(_dumped(past)) < 1.02 * past.size_bytes


@pytest.mark.parametrize(
    "body",
    [
        {},
        {"summaries": []},
        {"summaries": [], "turns": None},
        {"summaries": [], "turns": [[1]]},
        {"summaries": [], "turns": [["1", "text"]]},
        {"summaries": [], "turns": [[True, "text"]]},
        {"summaries": [[1, 2, None]], "turns": []},
        [],
    ],
)
def test_something_else_is_refused_as_a_past(body: Any) -> None:
    with pytest.raises(ValueError, match="a past has another shape"):
        decode_past(body)
