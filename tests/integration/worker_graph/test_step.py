"""A step from its first request to its progress."""

from collections.abc import Generator
from typing import Any, cast

import pytest

from loopctl.calls import Action, Ruling, ToolCall, ToolResult
from loopctl.domain import Usage
from loopctl.errors import CancelledError
from loopctl.past import TURN_BYTES, Past, Turn
from loopctl.steps import (
    StepEvent,
    TodoDone,
    ToolCallFinished,
    ToolCallStarted,
    TurnTaken,
    UsageReported,
    WorkerProgress,
)
from loopctl.testing import StillClock
from loopctl.testing.steps import ScriptedDoor, StagedModel, calling
from loopctl.worker.work import run_step

DONE = calling(("todo_done", {"summary": "written"}))
LIST = ("bash", {"command": "ls"})
READ = ("read_file", {"path": "a.py"})


def test_step_tells_usage_calls_and_turn_in_order_and_progress_last(play: Any) -> None:
    played = play(calling(LIST, text="I look."), DONE)

    assert played.events == [
        UsageReported(Usage(10, 5, 0.001)),
        ToolCallStarted(0, "bash", played.door.calls[0].arguments_hash),
        ToolCallFinished(0, "bash", 'bash {"command":"ls"}'),
        UsageReported(Usage(10, 5, 0.001)),
        TodoDone("written"),
        played.only(TurnTaken),
        played.only(WorkerProgress),
    ]


def test_call_is_made_only_when_the_event_after_its_start_is_taken(
    request_of: Any, specs: Any
) -> None:
    door = ScriptedDoor()
    model = StagedModel([calling(LIST), DONE])
    events = cast(
        "Generator[StepEvent, None, None]", run_step(request_of(), specs, door, model, StillClock())
    )
    for event in events:
        if isinstance(event, ToolCallStarted):
            break

    assert door.calls == []
    events.close()
    assert door.calls == []


def test_reply_is_kept_and_every_call_of_it_ruled_before_the_first_is_made(play: Any) -> None:
    played = play(calling(LIST, READ), DONE)

    assert played.door.trace[:5] == [
        "keep 0",
        "rule bash 0",
        "rule read_file 1",
        "call bash 0",
        "call read_file 1",
    ]


def test_ordinals_go_on_over_the_rounds_from_the_first_that_was_given(play: Any) -> None:
    played = play(calling(LIST, READ), calling(LIST), DONE, first_call=4)

    assert [call.ordinal for call in played.door.calls] == [4, 5, 6]
    assert {(call.session_id, call.iteration) for call in played.door.calls} == {("r1/T1/main", 3)}


def test_numbers_of_replies_go_on_from_the_first_that_was_given(play: Any) -> None:
    played = play(calling(LIST), DONE, first_reply=2)

    assert list(played.door.kept) == [2, 3]


def test_results_go_to_the_model_in_order_and_fenced_as_data(play: Any) -> None:
    played = play(calling(LIST, READ), DONE)

    first, second = played.told()
    assert first.startswith("<<<DATA ")
    assert '\nbash {"command":"ls"}\n' in first
    assert '\nread_file {"path":"a.py"}\n' in second


def test_denied_call_is_an_error_and_its_siblings_are_made(play: Any) -> None:
    door = ScriptedDoor(rulings={"bash": Ruling(Action.DENY, "no shells")})
    played = play(calling(LIST, READ), DONE, door=door)

    assert [call.tool for call in door.calls] == ["read_file"]
    assert played.of(ToolCallFinished)[0] == ToolCallFinished(
        0, "bash", "bash was denied: no shells", is_error=True
    )
    assert "bash was denied: no shells" in played.told()[0]
    assert played.only(WorkerProgress).tool_calls_errored


def test_failed_call_is_told_as_one_and_counted(play: Any) -> None:
    door = ScriptedDoor({"bash": lambda _call, _approval: ToolResult("exit 1", is_error=True)})
    played = play(calling(LIST), DONE, door=door)

    assert played.told()[0].startswith("The call failed:\n<<<DATA")
    assert played.only(WorkerProgress).tool_calls_errored


def test_equal_answers_have_equal_hashes_whatever_their_ids(play: Any) -> None:
    one = calling(LIST, text="same")
    other = calling(READ, LIST, text="same")
    renamed = type(one)(
        one.text, tuple(type(c)("x", c.name, c.arguments) for c in one.calls), finish="tool_calls"
    )
    first, second, third = (
        play(reply, DONE).only(WorkerProgress) for reply in (one, renamed, other)
    )

    assert first == second
    assert first.response_delta_hash != third.response_delta_hash
    assert first.tool_calls_hash != third.tool_calls_hash


def test_no_call_has_an_empty_hash_of_calls(play: Any) -> None:
    played = play(calling(text="Well."), calling(text="Well."))

    assert played.only(WorkerProgress).tool_calls_hash == ""
    assert not played.only(WorkerProgress).made_tool_calls


def test_turn_tells_words_calls_results_and_errors_in_short(play: Any) -> None:
    played = play(calling(("bash", {"comand": "ls"}), text="I look."), calling(LIST), DONE)

    turn = played.only(TurnTaken).text
    assert "I look." in turn
    assert "bash failed: the arguments do not fit" in turn
    assert '[bash {"command": "ls"} gave: bash {"command":"ls"}]' in turn
    assert 'todo_done {"summary": "written"}' in turn


def test_long_turn_is_cut_in_its_middle(play: Any) -> None:
    door = ScriptedDoor({"bash": lambda _call, _approval: ToolResult("é" * 5000)})
    script = [calling(("bash", {"command": f"{n}{'x' * 900}"}), text="t" * 3000) for n in range(9)]
    past = Past(turns=tuple(Turn(number, "p" * 4096) for number in range(1, 11)))
    turn = play(*script, DONE, door=door, past=past).only(TurnTaken).text

    assert TURN_BYTES * 3 // 4 < len(turn.encode()) <= TURN_BYTES
    assert "bytes left out" in turn
    assert turn.startswith("ttt")
    assert turn.endswith('[todo_done {"summary": "written"} gave: The todo is closed.]')


def test_record_of_a_step_with_a_short_prompt_is_short_and_leaves_no_call_out(play: Any) -> None:
    door = ScriptedDoor({"bash": lambda _call, _approval: ToolResult("é" * 5000)})
    script = [calling(("bash", {"command": f"run {n}"}), text="t" * 3000) for n in range(5)]
    turn = play(*script, DONE, door=door).only(TurnTaken).text

    assert len(turn.encode()) < 1500
    assert all(f"run {n}" in turn for n in range(5))


def test_ids_are_made_sound_where_the_provider_sends_empty_or_repeated_ones(play: Any) -> None:
    one = calling(LIST, READ)
    bare = type(one)("", tuple(type(c)("", c.name, c.arguments) for c in one.calls))
    played = play(bare, one, one, DONE)

    messages = played.model.asked[-1].messages
    asked = [c["id"] for m in messages for c in m.get("tool_calls") or ()]
    answered = [m["tool_call_id"] for m in messages if m["role"] == "tool"]
    assert asked == answered
    assert len(set(asked)) == 6
    assert {"id0", "id1"} < set(asked)


def test_request_to_stop_leaves_the_step_as_it_is(play: Any) -> None:
    def stop(_call: ToolCall, _approval: str | None) -> ToolResult:
        raise CancelledError("the run was asked to stop")

    with pytest.raises(CancelledError, match="asked to stop"):
        play(calling(LIST), DONE, door=ScriptedDoor({"bash": stop}))


def test_text_with_half_a_character_goes_through(play: Any) -> None:
    door = ScriptedDoor({"bash": lambda _call, _approval: ToolResult("\ud800 here")})
    played = play(calling(("bash", {"command": "\ud800"}), text="\ud800"), DONE, door=door)

    assert played.door.calls[0].arguments == {"command": "\ud800"}
    assert "? here" in played.told()[0]
    played.only(TurnTaken).text.encode()


def test_numbers_larger_than_a_machine_word_go_through(play: Any, spec_of: Any) -> None:
    big = 10**40
    played = play(
        calling(("count", {"to": big})), DONE, specs=[spec_of("count", to={"type": "integer"})]
    )

    assert played.door.calls[0].arguments == {"to": big}
