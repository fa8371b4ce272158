import json
import struct
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from loopctl.calls import ToolCall
from loopctl.domain import DecisionKind
from loopctl.errors import SchemaTooNewError
from loopctl.past import Past, Summary, Turn
from loopctl.plan import (
    INTERRUPT_FLAG,
    ITERATION_LIMIT,
    SCHEMA_VERSION,
    Budget,
    CallDone,
    Checkpoint,
    Interrupt,
    check_iteration,
    decode_interrupt,
    encode,
    encode_interrupt,
    interrupt_key,
    next_key,
    single_todo,
)

PAST = Past((Summary(1, 2, "both"),), (Turn(3, "half of it"),))
POINT = Checkpoint(plan=single_todo("g", "t", Budget(tokens_used=7)), tree="t1", base="c1")
ITERATIONS = st.integers(0, ITERATION_LIMIT - 1)
ORDINALS = st.integers(0, (1 << 30) - 2)
SAMPLE = Interrupt(
    kind=DecisionKind.APPROVAL,
    call=ToolCall("r1/T1/main", 3, 2, "mcp__bank__pay", {"amount": 12.5, "to": ["Ä"]}),
    checkpoint=POINT,
    blob=b"\x00\xffstate",
    done=(CallDone(0, "bash", "ok"), CallDone(1, "mcp__x__y", "no", is_error=True)),
    closed="half of it",
    reason="it cannot be undone",
)

interrupts = st.builds(
    Interrupt,
    kind=st.sampled_from([DecisionKind.APPROVAL, DecisionKind.OUTCOME]),
    call=st.builds(
        ToolCall,
        session_id=st.text(max_size=9),
        iteration=ITERATIONS,
        ordinal=ORDINALS,
        tool=st.text(max_size=9),
        arguments=st.dictionaries(st.text(max_size=3), st.integers() | st.text(max_size=3)),
    ),
    checkpoint=st.sampled_from([POINT, replace(POINT, past=PAST)]),
    blob=st.binary(max_size=40),
    done=st.lists(st.builds(CallDone), max_size=3).map(tuple),
    closed=st.none() | st.text(max_size=5),
    reason=st.text(max_size=5),
    since=st.text(max_size=5),
    first_reply=st.integers(0, 3000),
)


@given(ITERATIONS, ORDINALS, ITERATIONS)
def test_key_of_an_interrupt_is_out_of_reach_of_every_iteration(
    iteration: int, ordinal: int, other: int
) -> None:
    key = interrupt_key(iteration, ordinal)
    check_iteration(other)
    assert other < ITERATION_LIMIT <= INTERRUPT_FLAG <= key < 1 << 63
    with pytest.raises(ValueError, match="out of range"):
        check_iteration(key)


@given(ITERATIONS, ORDINALS, ITERATIONS, ORDINALS)
def test_keys_of_different_interrupts_are_different(a: int, n: int, b: int, m: int) -> None:
    assert (interrupt_key(a, n) == interrupt_key(b, m)) == ((a, n) == (b, m))


@given(ITERATIONS, ORDINALS)
def test_next_interrupt_of_a_step_takes_the_next_ordinal(iteration: int, ordinal: int) -> None:
    key = interrupt_key(iteration, ordinal)
    assert next_key(key) == interrupt_key(iteration, ordinal + 1) > key


@pytest.mark.parametrize("iteration", [-1, ITERATION_LIMIT, INTERRUPT_FLAG, INTERRUPT_FLAG | 1])
def test_iteration_out_of_range_is_refused(iteration: int) -> None:
    with pytest.raises(ValueError, match="out of range"):
        check_iteration(iteration)
    with pytest.raises(ValueError, match="out of range"):
        interrupt_key(iteration, 0)


@pytest.mark.parametrize("ordinal", [-1, 1 << 30])
def test_ordinal_out_of_range_is_refused(ordinal: int) -> None:
    with pytest.raises(ValueError, match="out of range"):
        interrupt_key(1, ordinal)


@given(interrupts)
def test_interrupt_comes_back_as_it_was_put_in(interrupt: Interrupt) -> None:
    assert decode_interrupt(encode_interrupt(interrupt)) == interrupt


def test_blob_of_an_earlier_version_reads_for_ever() -> None:
    blob = (Path(__file__).parent / "data" / "interrupt-v2.bin").read_bytes()
    assert decode_interrupt(blob) == SAMPLE


def test_blob_of_this_version_reads_for_ever() -> None:
    blob = (Path(__file__).parent / "data" / "interrupt-v3.bin").read_bytes()
    expected = replace(SAMPLE, checkpoint=replace(POINT, past=PAST), first_reply=1000)
    assert decode_interrupt(blob) == expected


def test_newer_interrupt_is_refused() -> None:
    blob = struct.pack(">I", SCHEMA_VERSION + 1) + encode_interrupt(SAMPLE)[4:]
    with pytest.raises(SchemaTooNewError):
        decode_interrupt(blob)


def changed(**keys: Any) -> bytes:
    blob = encode_interrupt(SAMPLE)
    body = json.loads(blob[4:])
    return blob[:4] + json.dumps({"interrupt": body["interrupt"] | keys}).encode()


@pytest.mark.parametrize(
    "blob",
    [
        b"",
        b"\x00\x00\x00\x02[]",
        encode(POINT),
        changed(extra=1),
        changed(kind="nothing"),
        changed(blob="no base64!"),
        changed(call=None),
        changed(done=[{}]),
    ],
    ids=["empty", "list", "checkpoint", "more", "kind", "blob", "call", "done"],
)
def test_what_is_no_interrupt_is_a_value_error(blob: bytes) -> None:
    with pytest.raises(ValueError):  # noqa: PT011 - many texts, one type
        decode_interrupt(blob)


def test_waiting_call_keeps_its_key() -> None:
    found = decode_interrupt(encode_interrupt(replace(SAMPLE, blob=b"")))
    assert found.call.key == SAMPLE.call.key
