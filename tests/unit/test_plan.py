import json
import struct
from dataclasses import replace
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from loopctl.domain import Axis, Option, StopReason
from loopctl.errors import SchemaTooNewError
from loopctl.forking import Fork, Forks, Settled
from loopctl.past import Past, Summary, Turn
from loopctl.plan import (
    SCHEMA_VERSION,
    Budget,
    Checkpoint,
    Plan,
    PlanStatus,
    Repeats,
    StepProgress,
    Todo,
    TodoStatus,
    decode,
    encode,
    single_todo,
)

todos = st.builds(
    Todo,
    id=st.text(max_size=5),
    text=st.text(max_size=40),
    status=st.sampled_from(TodoStatus),
    attempts=st.integers(0, 99),
    summary=st.text(max_size=20),
)
steps = st.builds(StepProgress)
budgets = st.builds(
    Budget,
    loops_used=st.integers(0, 99),
    loops_max=st.none() | st.integers(0, 99),
    usd_used=st.floats(0, 1e6, allow_nan=False),
)
plans = st.builds(
    Plan,
    goal=st.text(max_size=200),
    todos=st.lists(todos, max_size=4).map(tuple),
    cursor=st.integers(0, 4),
    progress=st.lists(steps, max_size=3).map(tuple),
    repeats=st.builds(Repeats, tree=st.integers(0, 9), type_errors=st.text(max_size=9)),
    replans=st.integers(0, 9),
    budget=budgets,
    status=st.sampled_from(PlanStatus),
    stop=st.none() | st.builds(StopReason, axis=st.sampled_from(Axis), reason=st.text(max_size=20)),
)
numbers = st.integers(0, 99)
words = st.text(max_size=30)
checkpoints = st.builds(
    Checkpoint,
    plan=plans,
    tree=st.text(max_size=40),
    base=st.text(max_size=40),
    observation=st.text(max_size=100),
    past=st.builds(
        Past,
        summaries=st.lists(st.builds(Summary, first=numbers, last=numbers, text=words)).map(tuple),
        turns=st.lists(st.builds(Turn, number=numbers, text=words)).map(tuple),
    ),
)


@given(checkpoints)
def test_every_checkpoint_survives_a_round_trip_and_encodes_the_same_twice(
    checkpoint: Checkpoint,
) -> None:
    blob = encode(checkpoint)
    assert decode(blob) == checkpoint
    assert encode(decode(blob)) == blob


def test_output_that_is_no_utf8_survives_in_an_observation() -> None:
    text = b"caf\xe9".decode("utf-8", "surrogateescape")
    checkpoint = Checkpoint(plan=single_todo("g", "t", Budget()), observation=text)
    assert decode(encode(checkpoint)).observation == text


def test_blob_of_a_newer_version_is_refused() -> None:
    with pytest.raises(SchemaTooNewError, match="schema too new: version 5"):
        decode(struct.pack(">I", SCHEMA_VERSION + 1) + b"{}")


def test_version_1_blob_decodes_to_one_active_todo_with_the_goal_as_its_text() -> None:
    blob = struct.pack(">I", 1) + json.dumps({"goal": "ship it", "tree": "abc"}).encode()
    plan = decode(blob).plan
    assert [(todo.text, todo.status) for todo in plan.todos] == [("ship it", TodoStatus.ACTIVE)]
    assert (plan.cursor, plan.goal, decode(blob).tree) == (0, "ship it", "abc")


@pytest.mark.parametrize(
    "blob",
    [
        b"",
        b"\x00\x00",
        struct.pack(">I", 2) + b"{}",
        struct.pack(">I", 2) + b"[1]",
        struct.pack(">I", 2) + b"not json",
        struct.pack(">I", 0) + b"{}",
        struct.pack(">I", 2) + b'{"plan": {"stop": null, "todos": [{"status": "odd"}]}}',
        struct.pack(">I", 3) + encode(Checkpoint(plan=Plan(goal="g")))[4:].replace(b"[]", b"[[]]"),
        struct.pack(">I", 2) + encode(Checkpoint(plan=Plan(goal="g")))[4:],
    ],
)
def test_damaged_blob_is_a_value_error(blob: bytes) -> None:
    with pytest.raises(ValueError):  # noqa: PT011 - json and our own words differ
        decode(blob)


@given(st.binary(max_size=60))
def test_no_bytes_make_the_decoder_raise_anything_else(blob: bytes) -> None:
    try:
        decode(blob)
    except (ValueError, SchemaTooNewError):
        return


def test_empty_plan_is_never_a_met_goal() -> None:
    assert not Plan(goal="g").is_goal_met


def test_plan_with_only_abandoned_todos_is_not_a_met_goal() -> None:
    todo = Todo(id="1", text="t", status=TodoStatus.ABANDONED)
    assert not Plan(goal="g", todos=(todo,)).is_goal_met


def test_closing_a_todo_moves_the_cursor_to_the_first_open_one() -> None:
    plan = Plan(goal="g", todos=tuple(Todo(id=str(n), text="t") for n in range(3))).with_cursor()
    closed = plan.with_todo(0, status=TodoStatus.DONE)
    assert closed.active == replace(plan.todos[1], status=TodoStatus.ACTIVE)
    assert closed.with_todo(1, status=TodoStatus.DONE).with_todo(2, status=TodoStatus.DONE) == (
        replace(
            closed,
            todos=tuple(replace(todo, status=TodoStatus.DONE) for todo in closed.todos),
            cursor=3,
        )
    )


BLOBS = Path(__file__).parent / "blobs"
"""Checkpoints that released versions wrote; they are read for ever, so none is ever changed."""


def test_stored_version_1_blob_is_read_for_ever() -> None:
    checkpoint = decode((BLOBS / "checkpoint-v1.bin").read_bytes())
    assert checkpoint == Checkpoint(
        plan=single_todo("Ship the importer", "Ship the importer", Budget()),
        tree="4b825dc642cb6eb9a060e54bf8d69288fbee4904",
        base="c1",
        observation="red",
    )


def test_stored_version_2_blob_is_read_for_ever() -> None:
    checkpoint = decode((BLOBS / "checkpoint-v2.bin").read_bytes())
    assert checkpoint == Checkpoint(
        plan=Plan(
            goal="Ship the importer — Zürich",
            todos=(
                Todo("1", "read the header", TodoStatus.DONE, 2, "reads it"),
                Todo("2", "drop this", TodoStatus.ABANDONED),
                Todo("3", "write rows", TodoStatus.ACTIVE, 1),
            ),
            cursor=2,
            progress=(
                StepProgress(
                    made_tool_calls=True,
                    produced_new_artifacts=True,
                    todo_completed=True,
                    response_delta_hash="a1",
                    tree="t1",
                    tool_calls_hash="c1",
                ),
                StepProgress(response_delta_hash="b2", tree="t1"),
            ),
            repeats=Repeats(tree=2, tool_calls=0, type_error=1, type_errors="e9"),
            replans=1,
            budget=Budget(3, 25, 100, 200000, 4200, 3600000, 0.25, 1.0),
            status=PlanStatus.STALLED,
            stop=StopReason(Axis.STALL, "no_progress"),
        ),
        tree="4b825dc642cb6eb9a060e54bf8d69288fbee4904",
        base="c1",
        observation="red",
        past=Past(summaries=(Summary(0, 0, "context"),)),
    )


def test_stored_version_3_blob_is_read_for_ever() -> None:
    checkpoint = decode((BLOBS / "checkpoint-v3.bin").read_bytes())
    assert checkpoint == Checkpoint(
        plan=single_todo("Ship it", "read the header", Budget(1, 25, 100, None, 42)),
        tree="4b825dc642cb6eb9a060e54bf8d69288fbee4904",
        base="c1",
        observation="red",
        past=Past(
            summaries=(Summary(1, 6, "looked around in Zürich"),),
            turns=(Turn(7, "called bash\nsaw red"), Turn(8, "")),
        ),
    )


def test_stored_version_4_blob_is_read_for_ever() -> None:
    checkpoint = decode((BLOBS / "checkpoint-v4.bin").read_bytes())
    forks = Forks(
        tried=Fork(3, "Which loop?", (Option("a", "by a"), Option("b")), ("c",)),
        fruitless=1,
        settled=(Settled("How far?", "narrow", "rows", "the goal says MVP"),),
    )
    plan = single_todo("Ship it", "read the header", Budget(1, 25, 100, None, 42))
    assert checkpoint == Checkpoint(
        plan=replace(plan, forks=forks),
        tree="4b825dc642cb6eb9a060e54bf8d69288fbee4904",
        base="c1",
        observation="red",
        past=Past(turns=(Turn(7, "saw red"),)),
        gate="{}",
    )


def test_context_of_a_version_1_blob_is_a_summary_of_what_was_before_all_turns() -> None:
    blob = struct.pack(">I", 1) + json.dumps({"goal": "g", "context": "so far"}).encode()
    assert decode(blob).past == Past(summaries=(Summary(0, 0, "so far"),))


def test_past_is_kept_without_a_word_that_is_not_in_it() -> None:
    turns = tuple(Turn(number, "x" * 50) for number in range(100))
    empty = encode(Checkpoint(plan=Plan(goal="g")))
    full = encode(Checkpoint(plan=Plan(goal="g"), past=Past(turns=turns)))
    assert len(full) - len(empty) < 100 * 60
    assert b"\\" not in encode(Checkpoint(plan=Plan(goal="g"), past=Past(turns=(Turn(1, "a"),))))
