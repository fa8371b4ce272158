import dataclasses
import enum
import json
import types
import typing
from collections.abc import Mapping
from typing import Any, Union, get_args, get_origin, get_type_hints

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from loopctl.calls import ToolResult
from loopctl.errors import EnvironmentFaultError
from loopctl.steps import InterruptRequired, TodoDone
from loopctl.worker.codec import decode_for_child, decode_for_engine, encode
from loopctl.worker.protocol import Frame, Hello, Ready, ToChild, ToEngine, Vectors

TEXT = st.text(st.characters(exclude_categories=()))
NUMBERS = st.integers(-(2**70), 2**70)
FLOATS = st.floats(allow_nan=False)
JSON = st.recursive(
    st.none() | st.booleans() | NUMBERS | FLOATS | TEXT,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(TEXT, inner, max_size=3),
    max_leaves=8,
)
PLAIN: dict[Any, st.SearchStrategy[Any]] = {
    str: TEXT,
    int: NUMBERS,
    float: FLOATS,
    bool: st.booleans(),
    bytes: st.binary(),
    type(None): st.none(),
}


def values(kind: Any) -> st.SearchStrategy[Any]:
    """Return any value of a type, by its annotations; texts may hold surrogates."""
    if isinstance(kind, typing.NewType):
        return values(kind.__supertype__)
    if kind in PLAIN:
        return PLAIN[kind]
    origin, args = get_origin(kind), get_args(kind)
    if origin in {Union, types.UnionType}:
        return st.one_of([values(arg) for arg in args])
    if origin is tuple and args[-1] is ...:
        return st.lists(values(args[0]), max_size=3).map(tuple)
    if origin is Mapping:
        return st.dictionaries(TEXT, JSON, max_size=3)
    if issubclass(kind, enum.Enum):
        return st.sampled_from(list(kind))
    assert isinstance(kind, type), kind
    assert dataclasses.is_dataclass(kind), kind
    hints = get_type_hints(kind)
    fields = {field.name: hints[field.name] for field in dataclasses.fields(kind)}
    made: Any = kind
    return st.builds(made, **{name: values(hint) for name, hint in fields.items()})


def named(kind: type) -> str:
    return kind.__name__


@pytest.mark.parametrize("kind", get_args(ToChild), ids=named)
@settings(max_examples=25)
@given(data=st.data())
def test_whatever_the_engine_says_arrives_as_it_was(kind: type, data: st.DataObject) -> None:
    frame = Frame(data.draw(NUMBERS), data.draw(values(kind)), data.draw(NUMBERS))
    line = encode(frame)
    assert b"\n" not in line
    assert decode_for_child(line) == frame


@pytest.mark.parametrize("kind", get_args(ToEngine), ids=named)
@settings(max_examples=25)
@given(data=st.data())
def test_whatever_the_child_says_arrives_as_it_was(kind: type, data: st.DataObject) -> None:
    frame = Frame(data.draw(NUMBERS), data.draw(values(kind)), data.draw(NUMBERS))
    line = encode(frame)
    assert b"\n" not in line
    assert decode_for_engine(line) == frame


def test_types_are_told_apart_by_name_also_where_their_fields_are_the_same() -> None:
    names = [kind.__name__ for side in (ToChild, ToEngine) for kind in get_args(side)]
    assert len(set(names)) == len({kind for s in (ToChild, ToEngine) for kind in get_args(s)})


def test_two_surrogates_that_would_make_one_character_stay_two() -> None:
    frame = Frame(1, TodoDone("\ud83d\ude00 \udcff"))
    assert decode_for_engine(encode(frame)) == frame


def test_bytes_are_base64_and_a_vectors_numbers_are_exact() -> None:
    event = InterruptRequired(1, "t", "k", "{}", b"\xff\xfb\x00")
    raw = json.loads(encode(Frame(3, event)))
    assert raw == {"talk": 3, "ask": 0, "is": "InterruptRequired", "body": raw["body"]}
    assert raw["body"]["blob"] == "//sA"
    vectors = Vectors(((0.1, 1e-300, 1 / 3),))
    assert decode_for_engine(encode(Frame(1, vectors))).body == vectors


@pytest.mark.parametrize(
    ("line", "what"),
    [
        (b"Loading...", "Expecting value"),
        (b"[]", "list indices"),
        (b"\xff\xfe", "utf-8"),
        (b"[" * 100_000, "recursion"),
        (b"{}", "'is'"),
        (b'{"is": "Launch", "body": {}, "talk": 1, "ask": 0}', "unknown message 'Launch'"),
        (b'{"is": "TodoDone", "body": {"why": 1}, "talk": 1, "ask": 0}', "keyword argument at why"),
        (b'{"is": "Settle", "body": {}, "talk": 1, "ask": 0}', "Field required at reservation"),
        (b'{"is": "TodoDone", "body": {}, "talk": "x", "ask": 0}', "invalid literal"),
    ],
)
def test_what_is_not_understood_is_an_error_that_says_what_and_of_whom(
    line: bytes, what: str
) -> None:
    with pytest.raises(EnvironmentFaultError) as caught:
        decode_for_engine(line)
    assert what in str(caught.value)
    assert "the model worker's process said" in str(caught.value)
    assert "same version of loop" in str(caught.value)
    assert len(str(caught.value)) < 600


def test_each_side_understands_only_what_is_meant_for_it() -> None:
    with pytest.raises(EnvironmentFaultError, match="unknown message 'Hello'"):
        decode_for_engine(encode(Frame(0, Hello(""))))
    with pytest.raises(EnvironmentFaultError, match=r"the engine said .* 'Ready'"):
        decode_for_child(encode(Frame(0, Ready())))


def test_what_json_cannot_say_is_refused_when_it_is_written() -> None:
    odd: Any = ToolResult(content={1, 2})  # type: ignore[arg-type]
    with pytest.raises(ValueError, match="ToolResult cannot be said in JSON"):
        encode(Frame(1, odd))
