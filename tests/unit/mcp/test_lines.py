import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from loopctl.sandbox.mcp.stdio import MAX_CHATTER, MAX_MESSAGE_BYTES, Lines


def line(number: int) -> bytes:
    message = {"jsonrpc": "2.0", "id": number, "result": {"text": "ä" * number}}
    return json.dumps(message, ensure_ascii=False).encode() + b"\n"


@given(st.lists(st.integers(0, 200), max_size=8), st.integers(1, 64))
def test_messages_are_the_same_however_they_are_cut(numbers: list[int], size: int) -> None:
    lines = Lines()
    stream = b"".join(line(number) for number in numbers)
    found = [
        message
        for start in range(0, len(stream), size)
        for message in lines.messages(stream[start : start + size])
    ]
    assert [getattr(message.message, "id", None) for message in found] == numbers
    assert lines.refusal == ""


@given(st.binary(max_size=400))
def test_no_bytes_do_harm(stream: bytes) -> None:
    lines = Lines()
    lines.messages(stream + b"\n")
    assert len(lines.messages(line(1))) == (0 if lines.refusal else 1)


def test_other_lines_are_put_up_with_for_a_while() -> None:
    lines = Lines()
    assert len(lines.messages(b"Welcome\x07!\n\n" + line(1))) == 1
    assert (lines.chatter, lines.refusal) == ("Welcome\\u{7}!", "")
    lines.messages(b"tick\n" * MAX_CHATTER)
    assert "writes other things" in lines.refusal
    assert lines.messages(line(2)) == []


@pytest.mark.parametrize(
    "broken", [b"{\n", b"[]\n", b'{"jsonrpc": "2.0", "id": 1, "result": {"x": "\\ud800"}}\n']
)
def test_a_message_that_cannot_be_read_is_the_end(broken: bytes) -> None:
    lines = Lines()
    assert len(lines.messages(line(1) + broken + line(2))) == 1
    assert "sent what is no message" in lines.refusal


def test_a_message_without_an_end_is_not_kept() -> None:
    lines = Lines()
    for _ in range(MAX_MESSAGE_BYTES >> 20):
        lines.messages(b"x" * (1 << 20))
    assert lines.refusal == ""
    lines.messages(b"x")
    assert "more than 16 MiB" in lines.refusal
    assert len(lines._rest) == 0
