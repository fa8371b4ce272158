"""A call that waits for a person in the middle of a step, and how the step goes on."""

import json
from dataclasses import replace
from importlib.metadata import version
from typing import Any

import pytest

from loopctl import __version__
from loopctl.calls import (
    Action,
    ApprovalRequired,
    OutcomeUnknown,
    Ruling,
    ToolCall,
    ToolResult,
    Waiting,
    call_key,
)
from loopctl.domain import DecisionKind, Usage
from loopctl.plan import CallDone
from loopctl.steps import (
    Assumed,
    InterruptRequired,
    PlanProposed,
    Resume,
    TodoDone,
    ToolCallFinished,
    ToolCallStarted,
    TurnTaken,
    UsageReported,
    WorkerProgress,
)
from loopctl.testing.steps import ScriptedDoor, calling
from loopctl.worker.graph.blob import unpacked

DONE = calling(("todo_done", {"summary": "written"}))
WRITE_A = ("write_file", {"path": "a", "content": "1"})
PUSH = ("push", {"branch": "main"})
WRITE_C = ("write_file", {"path": "c", "content": "3"})
BATCH = calling(WRITE_A, PUSH, WRITE_C, text="Here goes.")
GATED = {"push": Ruling(Action.APPROVE, "it leaves the sandbox")}


def gated(**tools: Any) -> ScriptedDoor:
    return ScriptedDoor(tools, GATED)


def resume_of(event: InterruptRequired, **changes: Any) -> Resume:
    fields: dict[str, Any] = {
        "blob": event.blob,
        "done": (),
        "call_id": event.tool_call_id,
        "is_allowed": True,
        "answer": "approve",
        "approval": "token",
        **changes,
    }
    return Resume(**fields)


def refused() -> dict[str, Any]:
    return {"is_allowed": False, "answer": "not on a Friday", "approval": None}


def test_gated_call_interrupts_after_those_before_it_have_run(play: Any) -> None:
    played = play(BATCH, door=gated())

    assert played.door.trace == [
        "keep 0",
        "rule write_file 0",
        "rule push 1",
        "rule write_file 2",
        "call write_file 0",
    ]
    event = played.only(InterruptRequired)
    assert event == InterruptRequired(
        1,
        "push",
        call_key("r1/T1/main", 3, 1),
        '{"branch":"main"}',
        event.blob,
        DecisionKind.APPROVAL,
        "it leaves the sandbox",
    )
    assert played.names[-2:] == ["InterruptRequired", "WorkerProgress"]
    assert played.of(TurnTaken) == []
    assert [started.tool_call_id for started in played.of(ToolCallStarted)] == [0]


def test_approved_call_is_the_next_to_be_made_and_siblings_are_not_run_again(play: Any) -> None:
    event = play(BATCH, door=gated()).only(InterruptRequired)
    played = play(DONE, door=gated(), resume=resume_of(event))

    assert played.door.trace == ["call push 1", "call write_file 2", "keep 1"]
    assert played.door.approvals == ["token", None]
    wanted = ['"path":"a"', '"branch":"main"', '"path":"c"']
    assert [one in told for one, told in zip(wanted, played.told(), strict=True)] == [True] * 3
    assert played.only(TodoDone)
    assert played.only(TurnTaken).text.startswith("Here goes.\n[write_file")


def test_resumed_step_comes_to_the_same_as_one_that_was_never_interrupted(play: Any) -> None:
    event = play(BATCH, door=gated()).only(InterruptRequired)
    resumed = play(DONE, door=gated(), resume=resume_of(event))
    whole = play(BATCH, DONE)

    assert resumed.only(WorkerProgress) == whole.only(WorkerProgress)
    assert resumed.only(TurnTaken) == whole.only(TurnTaken)
    assert resumed.model.asked[-1] == whole.model.asked[-1]


def test_refused_call_fails_with_the_persons_words_and_the_step_goes_on(play: Any) -> None:
    event = play(BATCH, door=gated()).only(InterruptRequired)
    played = play(DONE, door=gated(), resume=resume_of(event, **refused()))

    assert [call.tool for call in played.door.calls] == ["write_file"]
    finished = played.of(ToolCallFinished)[0]
    assert finished.is_error
    assert "a person did not allow it: not on a Friday" in finished.content
    assert "not on a Friday" in played.told()[1]
    assert played.only(TodoDone)


def test_second_gated_call_interrupts_the_resumed_step_again(play: Any) -> None:
    batch = calling(PUSH, WRITE_A, ("push", {"branch": "next"}))
    first = play(batch, door=gated()).only(InterruptRequired)
    second = play(door=gated(), resume=resume_of(first))
    event = second.only(InterruptRequired)

    assert (first.tool_call_id, event.tool_call_id) == (0, 2)
    assert second.door.trace == ["call push 0", "call write_file 1"]
    third = play(DONE, door=gated(), resume=resume_of(event, approval="other"))
    assert third.door.trace == ["call push 2", "keep 1"]
    assert third.door.approvals == ["other"]


def test_door_that_wants_approval_interrupts_without_losing_what_has_run(play: Any) -> None:
    def push(call: ToolCall, approval: str | None) -> ToolResult | Waiting:
        return ToolResult("pushed") if approval else ApprovalRequired(call, "ask first")

    event = play(BATCH, door=ScriptedDoor({"push": push})).only(InterruptRequired)
    assert (event.kind, event.reason, event.tool_call_id) == (
        DecisionKind.APPROVAL,
        "ask first",
        1,
    )
    played = play(DONE, door=ScriptedDoor({"push": push}), resume=resume_of(event))
    assert played.door.trace == ["call push 1", "call write_file 2", "keep 1"]


def test_approval_that_is_not_good_any_more_interrupts_again(play: Any) -> None:
    def push(call: ToolCall, approval: str | None) -> ToolResult | Waiting:
        return ToolResult("pushed") if approval == "new" else ApprovalRequired(call, "expired")

    door = ScriptedDoor({"push": push}, GATED)
    first = play(BATCH, door=door).only(InterruptRequired)
    second = play(door=door, resume=resume_of(first)).only(InterruptRequired)
    assert (second.tool_call_id, second.reason) == (1, "expired")
    played = play(DONE, door=door, resume=resume_of(second, approval="new"))
    assert played.only(TodoDone)
    assert door.trace.count("call write_file 0") == 1


def test_unknown_outcome_interrupts_and_the_ledger_answers_on_resume(play: Any) -> None:
    door = ScriptedDoor({"push": lambda call, _a: OutcomeUnknown(call, "2026-01-02T03:04:05Z")})
    event = play(BATCH, door=door).only(InterruptRequired)
    assert (event.kind, event.since) == (DecisionKind.OUTCOME, "2026-01-02T03:04:05Z")

    resume = resume_of(event, answer="it happened", approval=None)
    played = play(DONE, resume=resume)
    assert played.door.trace == ["call push 1", "call write_file 2", "keep 1"]
    assert played.door.approvals == [None, None]


def test_plan_and_words_from_before_an_interrupt_are_told_at_the_end(play: Any) -> None:
    batch = calling(("plan", {"todos": ["a"]}), ("assume", {"text": "UTC"}), PUSH)
    before = play(batch, door=gated())
    played = play(DONE, door=gated(), resume=resume_of(before.only(InterruptRequired)))

    assert before.only(Assumed)
    assert played.of(Assumed) == []
    assert before.of(PlanProposed) == []
    assert played.only(PlanProposed) == PlanProposed(("a",))


def test_blob_is_small_and_holds_neither_prompt_nor_approval(play: Any) -> None:
    batch = calling(PUSH, PUSH)
    first = play(batch, door=gated(), answer="the persons answer").only(InterruptRequired)
    resume = resume_of(first, approval="the token")
    second = play(door=gated(), answer="the persons answer", resume=resume).only(InterruptRequired)

    for event in (first, second):
        assert len(event.blob) < 16_000
        content = unpacked(event.blob)
        assert b"push" in content
        assert b"Ship the importer" not in content
        assert b"the token" not in content
        assert b"the persons answer" not in content


def test_without_blob_the_whole_step_is_taken_again_on_the_kept_replies(play: Any) -> None:
    before = play(BATCH, door=gated())
    event = before.only(InterruptRequired)
    replies = tuple(before.door.kept.values())
    resume = resume_of(event, blob=b"", paid=1)
    played = play(DONE, door=gated(), resume=resume, replies=replies)

    assert played.door.trace[-4:] == [
        "call write_file 0",
        "call push 1",
        "call write_file 2",
        "keep 1",
    ]
    assert played.door.approvals == [None, "token", None]
    assert [told.reply for told in played.of(UsageReported)] == [1]


def test_without_blob_a_refused_call_is_not_made_either(play: Any) -> None:
    before = play(BATCH, door=gated())
    event = before.only(InterruptRequired)
    replies = tuple(before.door.kept.values())
    resume = resume_of(event, blob=b"", **refused())
    played = play(DONE, door=gated(), resume=resume, replies=replies)

    assert [call.tool for call in played.door.calls] == ["write_file", "write_file"]
    assert "not on a Friday" in played.told()[1]


def test_decision_is_not_carried_over_to_a_call_that_was_sampled_anew(play: Any) -> None:
    event = play(BATCH, door=gated()).only(InterruptRequired)
    other = calling(WRITE_A, ("push", {"branch": "prod"}))
    played = play(other, door=gated(), resume=resume_of(event, blob=b""))

    assert played.door.approvals == [None]
    assert played.only(InterruptRequired).pending_tool_intent == '{"branch":"prod"}'


@pytest.mark.parametrize("damage", ["version", "format", "body", "call", "nonsense"])
def test_blob_that_cannot_be_read_has_the_step_taken_again_without_what_was_done(
    play: Any, damage: str
) -> None:
    before = play(BATCH, door=gated())
    event = before.only(InterruptRequired)
    resume = resume_of(
        event,
        blob=damaged(event.blob, damage),
        done=(CallDone(0, "write_file", "written before"),),
    )
    replies = tuple(before.door.kept.values())
    played = play(DONE, door=gated(), resume=resume, replies=replies)

    assert [entry for entry in played.door.trace if entry.startswith("call")] == [
        "call push 1",
        "call write_file 2",
    ]
    assert "written before" in played.told()[0]
    assert [one.tool_call_id for one in played.of(ToolCallStarted)] == [1, 2]
    assert [one.tool_call_id for one in played.of(ToolCallFinished)] == [1, 2]
    assert played.only(TodoDone)


def test_gated_call_that_was_done_before_is_not_asked_about_again(play: Any) -> None:
    batch = calling(PUSH, ("push", {"branch": "next"}))
    first = play(batch, door=gated())
    second = play(door=gated(), resume=resume_of(first.only(InterruptRequired)))
    resume = resume_of(
        second.only(InterruptRequired), blob=b"unreadable", done=(CallDone(0, "push", "pushed"),)
    )
    played = play(DONE, door=gated(), resume=resume, replies=tuple(first.door.kept.values()))

    assert [call.ordinal for call in played.door.calls] == [1]
    assert played.of(InterruptRequired) == []


def test_blob_names_the_versions_that_wrote_it(play: Any) -> None:
    blob = play(BATCH, door=gated()).only(InterruptRequired).blob
    versions = json.loads(blob.partition(b"\n")[0])["versions"]

    assert versions == {
        "loopctl": __version__,
        **{name: version(name) for name in versions if name != "loopctl"},
    }
    assert "langgraph" in versions


def damaged(blob: bytes, damage: str) -> bytes:
    first, _, body = blob.partition(b"\n")
    header = json.loads(first)
    match damage:
        case "version":
            header["versions"]["langgraph"] = "0.0.1"
        case "format":
            header["format"] = 99
        case "call":
            header["call"] = "0" * 64
        case "body":
            body = body[:-1]
        case _:
            return b"\x80nonsense"
    return json.dumps(header, sort_keys=True).encode() + b"\n" + body


def test_reply_that_was_kept_is_given_again_instead_of_asking(play: Any) -> None:
    whole = play(BATCH, DONE)
    replies = tuple(whole.door.kept.values())
    again = play(replies=replies)

    assert again.model.asked == []
    assert again.door.kept == whole.door.kept
    assert again.door.calls == whole.door.calls
    assert again.events == whole.events, "what it has cost is told again too"
    assert [told.reply for told in again.of(UsageReported)] == [0, 1]


def test_reply_that_was_kept_before_its_cost_was_is_given_again_for_nothing(play: Any) -> None:
    whole = play(DONE)
    old = json.loads(whole.door.kept[0])
    del old["usage"]
    again = play(replies=(json.dumps(old),))

    assert [told.usage for told in again.of(UsageReported)] == [Usage()]


def test_model_is_asked_when_the_kept_replies_are_used_up(play: Any) -> None:
    whole = play(BATCH, DONE, first_call=2, first_reply=5)
    again = play(DONE, replies=(whole.door.kept[5],), first_call=2, first_reply=5)

    assert again.model.asked == [whole.model.asked[1]]
    assert again.door.kept == whole.door.kept
    assert [call.ordinal for call in again.door.calls] == [2, 3, 4]


def test_resumed_step_uses_the_replies_that_were_kept_after_the_interrupt(play: Any) -> None:
    before = play(BATCH, door=gated())
    resume = resume_of(before.only(InterruptRequired))
    once = play(DONE, door=gated(), resume=resume)
    replies = (before.door.kept[0], once.door.kept[1])
    twice = play(door=gated(), resume=resume, replies=replies)

    assert twice.model.asked == []
    assert twice.door.calls == once.door.calls
    assert twice.only(WorkerProgress) == once.only(WorkerProgress)


def test_kept_reply_of_another_shape_is_refused(play: Any) -> None:
    with pytest.raises(ValueError, match="kept reply"):
        play(replies=('{"text": 1}',))


def test_interrupts_go_on_over_the_rounds_of_a_step(play: Any) -> None:
    first = play(calling(WRITE_A), calling(PUSH), door=gated()).only(InterruptRequired)
    assert first.tool_call_id == 1
    resumed = play(calling(WRITE_C), DONE, door=gated(), resume=resume_of(first))

    assert resumed.door.trace == [
        "call push 1",
        "keep 2",
        "rule write_file 2",
        "call write_file 2",
        "keep 3",
    ]
    assert len(resumed.model.asked) == 2
    assert replace(resumed.only(TodoDone), summary="") == TodoDone()
