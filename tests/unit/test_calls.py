from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from loopctl.calls import MAX_RESULT_BYTES, ToolCall, bounded, call_key, canonical

TEXTS = st.text(st.characters(exclude_categories=()), max_size=12)
FIELDS = st.tuples(TEXTS, st.integers(0, 1 << 40), st.integers(0, 1 << 40))
JSON: st.SearchStrategy[Any] = st.recursive(
    st.none()
    | st.booleans()
    | st.integers()
    | st.floats(allow_nan=False, allow_infinity=False)
    | TEXTS,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(TEXTS, inner, max_size=3),
    max_leaves=8,
)


def written(value: object) -> str:
    """By which values of JSON differ: 1, 1.0 and true are three, and -0.0 is not 0.0."""
    if isinstance(value, dict):
        return f"{{{sorted((repr(key), written(item)) for key, item in value.items())}}}"
    if isinstance(value, list):
        return f"[{', '.join(map(written, value))}]"
    return repr(value)


@given(FIELDS, FIELDS)
def test_keys_of_different_calls_are_different(
    one: tuple[str, int, int], two: tuple[str, int, int]
) -> None:
    assert (call_key(*one) == call_key(*two)) == (one == two)


@pytest.mark.parametrize(
    ("one", "two"),
    [
        (("a:1", 2, 3), ("a", 12, 3)),
        (("s", 1, 23), ("s", 12, 3)),
        (("s", 1, 0), ("s", 10, 0)),
        (('s",1', 1, 0), ("s", 1, 1)),
        (("\U0001f600", 1, 0), ("\ud83d\ude00", 1, 0)),
        (("", 0, 0), ("0", 0, 0)),
    ],
)
def test_fields_that_run_into_each_other_keep_their_bounds(
    one: tuple[str, int, int], two: tuple[str, int, int]
) -> None:
    assert call_key(*one) != call_key(*two)


def test_key_stays_what_it_was_in_earlier_versions() -> None:
    expected = "ab51cc167f69267591d286a26264aecc"
    assert call_key("20261130T184500-3f2a/T1/main", 3, 7)[:32] == expected


@given(JSON, JSON)
def test_canonical_forms_are_equal_for_equal_values_only(one: object, two: object) -> None:
    assert (canonical(one) == canonical(two)) == (written(one) == written(two))


@given(st.dictionaries(TEXTS, JSON, max_size=4))
def test_hash_of_arguments_does_not_depend_on_their_order(arguments: dict[str, Any]) -> None:
    turned = dict(reversed(arguments.items()))
    calls = [ToolCall("s", 1, 0, "t", one) for one in (arguments, turned)]
    assert calls[0].arguments_hash == calls[1].arguments_hash


def deep() -> object:
    value: list[object] = []
    for _ in range(100_000):
        value = [value]
    return value


@pytest.mark.parametrize(
    "value",
    [float("nan"), float("inf"), {1: 2}, {"a": {None: 1}}, (1,), {1, 2}, b"x", object(), deep()],
    ids=["nan", "inf", "number key", "null key", "tuple", "set", "bytes", "object", "deep"],
)
def test_what_json_cannot_say_is_refused(value: object) -> None:
    with pytest.raises(ValueError, match="no JSON"):
        canonical(value)


@given(st.text(max_size=50))
def test_short_text_is_not_cut(text: str) -> None:
    assert bounded(text) == text


@given(st.text(st.characters(exclude_categories=()), min_size=1, max_size=5), st.integers(1, 3))
def test_long_text_is_cut_to_the_bound_once(piece: str, times: int) -> None:
    text = piece * (times * MAX_RESULT_BYTES)
    cut = bounded(text)
    assert len(cut.encode("utf-8", "surrogatepass")) <= MAX_RESULT_BYTES
    assert bounded(cut) == cut
