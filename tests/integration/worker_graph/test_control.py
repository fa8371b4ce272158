"""What a model plans, closes, asks and assumes, and nothing that it merely says."""

from typing import Any

import pytest

from loopctl.domain import Assumption, DecisionDraft, DecisionKind, Option
from loopctl.steps import (
    Assumed,
    Deferred,
    ForkRaised,
    PlanProposed,
    PremiseInvalid,
    StepEvent,
    TodoDone,
    ToolCallStarted,
    TurnTaken,
    WorkerProgress,
)
from loopctl.testing.steps import calling

DONE = calling(("todo_done", {"summary": "written"}))
LIST = ("bash", {"command": "ls"})
PLAN = ("plan", {"todos": ["read", "write"]})
FORK = {
    "question": "Which parser?",
    "bucket": "quality",
    "options": [{"name": "regex", "prompt": "short"}, {"name": "hand"}],
    "best_guess": "regex",
}

ENDING = [
    (("todo_done", {"summary": "written"}), TodoDone("written")),
    (
        ("defer", {"reason": "no key", "decision_needed": "Which key?", "best_guess": "none"}),
        Deferred(DecisionDraft(DecisionKind.EXTERNAL, "Which key?", "none", reason="no key")),
    ),
    (
        ("defer", {"reason": "no key", "decision_needed": "Which key?"}),
        Deferred(DecisionDraft(DecisionKind.EXTERNAL, "Which key?", reason="no key")),
    ),
    (
        ("fork", FORK),
        ForkRaised("Which parser?", "quality", (Option("regex", "short"), Option("hand")), "regex"),
    ),
    (
        ("premise_invalid", {"claim": "there is a parser", "evidence": "ls shows none"}),
        PremiseInvalid("there is a parser", "ls shows none"),
    ),
]


@pytest.mark.parametrize(("call", "event"), ENDING)
def test_control_call_becomes_its_event_and_ends_the_step(
    play: Any, call: tuple[str, Any], event: StepEvent
) -> None:
    played = play(calling(LIST, call, LIST))

    assert event in played.events
    assert [made.ordinal for made in played.door.calls] == [0]
    assert "was not made: the step had ended" in played.only(TurnTaken).text
    assert len(played.model.asked) == 1


def test_assumption_is_told_and_the_step_goes_on(play: Any) -> None:
    played = play(calling(("assume", {"text": "dates are UTC"}), LIST), DONE)

    assert played.only(Assumed) == Assumed(Assumption("dates are UTC"))
    assert len(played.door.calls) == 1


def test_new_plan_is_told_at_the_end_of_the_step_which_goes_on(play: Any) -> None:
    played = play(calling(PLAN, LIST), DONE)

    assert played.only(PlanProposed) == PlanProposed(("read", "write"))
    assert played.only(TodoDone)


def test_control_calls_are_no_calls_through_the_door(play: Any) -> None:
    played = play(calling(PLAN), DONE)

    assert played.door.trace == ["keep 0", "keep 1"]
    assert played.of(ToolCallStarted) == []


@pytest.mark.parametrize(
    "call",
    [
        ("todo_done", {}),
        ("todo_done", {"summary": "  "}),
        ("defer", {"reason": "why"}),
        ("fork", FORK | {"bucket": "other"}),
        ("fork", FORK | {"options": []}),
        ("fork", FORK | {"options": [{"name": "a"}, {"name": "a", "prompt": "b"}]}),
        ("premise_invalid", {"claim": "", "evidence": "e"}),
        ("plan", {"todos": []}),
        ("plan", {"todos": ["a", "a"]}),
        ("plan", {"todos": ["a", " "]}),
        ("plan", {"todos": [str(number) for number in range(51)]}),
        ("plan", {"todos": ["a"], "more": 1}),
        ("plan", {"todos": ["a" * 2001]}),
        ("todo_done", {"summary": "s" * 8001}),
        ("defer", {"reason": "r", "decision_needed": "?" * 100_000}),
    ],
)
def test_wrong_control_call_goes_back_and_ends_nothing(play: Any, call: tuple[str, Any]) -> None:
    played = play(calling(call), DONE)

    assert played.told()[0].startswith("The call failed:\n")
    assert played.only(TodoDone) == TodoDone("written")
    assert played.of(PlanProposed) == []


def test_planning_step_ends_with_the_plan(play: Any) -> None:
    played = play(calling(("read_file", {"path": "a"})), calling(PLAN), is_planning=True)

    assert played.names[-3:] == ["PlanProposed", "TurnTaken", "WorkerProgress"]
    assert played.only(PlanProposed) == PlanProposed(("read", "write"))
    assert [asked.purpose for asked in played.model.asked] == ["plan", "plan"]
    assert all(asked.must_call for asked in played.model.asked)


def test_planning_step_is_told_of_the_same_tools_in_the_same_order_as_the_others(play: Any) -> None:
    planning = play(calling(PLAN), is_planning=True).model.asked[0]
    working = play(DONE).model.asked[0]

    assert planning.specs == working.specs


@pytest.mark.parametrize(
    "call", [LIST, ("write_file", {"path": "a", "content": "b"}), ("push", {"branch": "main"})]
)
def test_planning_step_makes_no_call_that_might_change_something(play: Any, call: Any) -> None:
    played = play(calling(call), calling(PLAN), is_planning=True)

    assert not [line for line in played.door.trace if not line.startswith("keep")]
    (told,) = played.told()
    assert f"this step makes the plan; {call[0]} comes after it" in told
    assert told.endswith("read_file, plan, defer, fork, premise_invalid, assume, propose")
    assert played.only(PlanProposed)


def test_planning_step_closes_no_todo(play: Any) -> None:
    played = play(DONE, calling(PLAN), is_planning=True)

    assert played.of(TodoDone) == []
    assert "todo_done comes after it" in played.told()[0]


def test_planning_reply_without_plan_has_one_reminder_then_the_step_ends(play: Any) -> None:
    talk = calling(text="First I would read, then write.")
    played = play(talk, talk, is_planning=True)

    assert played.of(PlanProposed) == []
    assert "Call `plan`" in played.told()[0]
    assert played.names == ["UsageReported", "UsageReported", "TurnTaken", "WorkerProgress"]


def test_relay_has_no_sub_goal_and_no_plan(play: Any) -> None:
    played = play(calling(PLAN), DONE, step_goal="")

    assert "plan" not in played.model.asked[0].tools
    assert "pursue this todo" not in played.model.asked[0].text
    assert played.of(PlanProposed) == []
    assert "there is no tool 'plan' here" in played.told()[0]


def test_prose_decides_nothing(play: Any) -> None:
    talk = calling(text='I defer this. {"type": "todo_done", "summary": "x"} todo_done()')
    played = play(talk, talk)

    assert played.names == ["UsageReported", "UsageReported", "TurnTaken", "WorkerProgress"]


def test_step_without_call_has_one_reminder_in_all(play: Any) -> None:
    talk = calling(text="Hm.")
    played = play(talk, calling(LIST), talk)

    assert len(played.model.asked) == 3
    assert isinstance(played.events[-1], WorkerProgress)
    assert not played.events[-1].tool_calls_errored


def test_work_tool_cannot_take_the_name_of_a_control_tool(play: Any, spec_of: Any) -> None:
    played = play(DONE, specs=[spec_of("todo_done", anything={})])

    assert played.model.asked[0].tools.count("todo_done") == 1
    assert played.only(TodoDone)
    assert played.door.calls == []
