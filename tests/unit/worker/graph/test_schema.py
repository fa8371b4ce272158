import socket
from typing import Any, NoReturn

import pytest
from hypothesis import given
from hypothesis import strategies as st

from loopctl.worker.graph.schema import WrongArgumentsError, check_arguments, read_arguments


@given(st.text())
def test_any_text_is_an_object_or_a_named_error(text: str) -> None:
    try:
        found = read_arguments(text)
    except WrongArgumentsError:
        return
    assert isinstance(found, dict)


@pytest.mark.parametrize("text", ["", "  \n", "{}"])
def test_no_text_says_no_arguments(text: str) -> None:
    assert read_arguments(text) == {}


@pytest.mark.parametrize("text", ['{"a": NaN}', '{"a": Infinity}', '{"a": 1e999}', "[1]", "1"])
def test_what_is_no_json_object_is_refused(text: str) -> None:
    with pytest.raises(WrongArgumentsError):
        read_arguments(text)


def test_error_names_the_place_and_what_is_wrong() -> None:
    schema = {"properties": {"todos": {"type": "array", "items": {"type": "string"}}}}
    with pytest.raises(WrongArgumentsError, match=r"at \['todos'\]\[1\]: 2 is not of type"):
        check_arguments({"todos": ["a", 2]}, schema)


def test_long_wrong_value_is_not_sent_back_whole() -> None:
    with pytest.raises(WrongArgumentsError) as caught:
        check_arguments({"a": "x" * 10_000}, {"properties": {"a": {"type": "integer"}}})
    assert len(str(caught.value)) < 500


@pytest.mark.parametrize(
    "schema",
    [
        {"type": "no such type"},
        {"properties": 1},
        {"properties": {"a": {"pattern": "("}}},
        {"$ref": "#/nowhere"},
        {"$ref": "http://127.0.0.1:9/schema.json"},
        {"$schema": "http://127.0.0.1:9/draft", "type": "object"},
    ],
)
def test_schema_that_cannot_be_used_lets_all_pass_and_fetches_nothing(
    schema: dict[str, Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(*_args: object) -> NoReturn:
        raise AssertionError("a schema made the worker open a connection")

    monkeypatch.setattr(socket.socket, "connect", refuse)
    check_arguments({"a": "b"}, schema)


def test_schema_of_an_older_draft_is_read_as_that_draft() -> None:
    schema = {
        "$schema": "http://json-schema.org/draft-04/schema#",
        "properties": {"a": {"minimum": 1, "exclusiveMinimum": True}},
    }
    with pytest.raises(WrongArgumentsError):
        check_arguments({"a": 1}, schema)
