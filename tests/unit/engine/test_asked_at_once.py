"""Somebody who is there is asked while the task goes on: about a call, and before a step."""

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from loopctl.calls import ApprovalRequired, ToolCall
from loopctl.domain import (
    APPROVED,
    REJECTED,
    TIMED_OUT,
    Axis,
    DecisionDraft,
    DecisionKind,
    RunStatus,
    Scope,
    Sha,
    StopReason,
    Task,
)
from loopctl.engine.permission import Permission
from loopctl.records import RunRecord
from loopctl.steps import InterruptRequired, OutputTail, PlanProposed, TodoDone, interrupt_for
from loopctl.store.database import open_database
from loopctl.store.decisions import SqliteDecisions
from loopctl.store.runs import SqliteRuns
from loopctl.testing import ScriptedStep, ScriptedWorker

MakeTask = Callable[..., Task]

DONE = (OutputTail(0, "ok"), TodoDone("did it"))
CALL = ToolCall("r1/T1/main", 1, 1, "mcp__bank__pay", {"usd": 5})
WAITS = interrupt_for(ApprovalRequired(CALL, "it cannot be undone"), b"state")


class Person:
    """Gives its answers in turn."""

    def __init__(self, *answers: str | None) -> None:
        self.answers = list(answers)
        self.asked: list[DecisionDraft] = []

    def ask(self, draft: DecisionDraft, timeout_s: float) -> str | None:
        assert timeout_s == 60
        self.asked.append(draft)
        return self.answers.pop(0)


@pytest.fixture
def let(bench: Any, tmp_path: Path) -> Iterator[Callable[..., SqliteDecisions]]:
    """Put a person behind the bench; ``None`` for nobody."""
    database = open_database(tmp_path / "loop.db")
    SqliteRuns(database).create_run(
        RunRecord("r1", RunStatus.RUNNING, "the goal", Sha("c1"), "b", "", Scope(), "{}", "")
    )

    def made(person: Person | None, *approve: str) -> SqliteDecisions:
        decisions = SqliteDecisions(database)
        bench.more["permission"] = Permission(
            "r1",
            approve,
            60,
            decisions=decisions,
            clock=bench.clock,
            emit=bench.log.append,
            person=person,
        )
        return decisions

    yield made
    database.close()


def interrupted(raised: InterruptRequired = WAITS) -> ScriptedStep:
    return ScriptedStep(tree="half", events=(raised,))


def hands(*steps: ScriptedStep) -> ScriptedWorker:
    return ScriptedWorker(steps)


@pytest.mark.parametrize(
    ("answer", "is_allowed"), [(APPROVED, True), (REJECTED, False), (TIMED_OUT, False)]
)
def test_a_call_is_asked_about_at_once_and_the_step_goes_on_at_it(
    bench: Any,
    task: MakeTask,
    let: Any,
    answer: str,
    is_allowed: bool,  # noqa: FBT001
) -> None:
    person = Person(answer)
    decisions = let(person)
    bench.gate.passing = frozenset({"good"})
    worker = hands(interrupted(), ScriptedStep(tree="good", events=DONE))
    ended = bench.run(worker, task())
    assert ended.is_passed
    first, second = worker.requests
    assert first.loop_iteration == second.loop_iteration == 1
    assert second.resume is not None
    assert (second.resume.blob, second.resume.is_allowed) == (b"state", is_allowed)
    assert len(person.asked) == 1
    (decision,) = decisions.decisions(task="T1")
    assert (decision.kind, decision.answer) == (DecisionKind.APPROVAL, answer)
    assert ended.plan.budget.loops_used == 1


def test_a_call_that_is_left_for_later_puts_the_task_aside(
    bench: Any, task: MakeTask, let: Any
) -> None:
    let(Person(None))
    ended = bench.run(hands(interrupted()), task())
    assert ended.stop == StopReason(Axis.DEFER, "approval")
    assert len(ended.drafts) == 1


def test_a_planning_step_that_is_approved_goes_on_planning(
    bench: Any, task: MakeTask, let: Any
) -> None:
    let(Person(APPROVED))
    bench.gate.passing = frozenset({"good"})
    worker = hands(
        ScriptedStep(events=(WAITS,)),
        ScriptedStep(events=(PlanProposed(("only",)),)),
        ScriptedStep(tree="good", events=DONE),
    )
    worker.makes_plans = True
    assert bench.run(worker, task()).is_passed
    assert [(one.is_planning, one.resume is not None) for one in worker.requests] == [
        (True, False),
        (True, True),
        (False, False),
    ]


def test_a_step_is_issued_once_somebody_approves_and_asked_about_once(
    bench: Any, task: MakeTask, let: Any
) -> None:
    person = Person(APPROVED)
    let(person, "step:T1")
    bench.gate.passing = frozenset({"good"})
    worker = hands(ScriptedStep(tree="half"), ScriptedStep(tree="good", events=DONE))
    assert bench.run(worker, task()).is_passed
    assert len(person.asked) == 1


@pytest.mark.parametrize(("answer", "asks"), [(REJECTED, 0), (TIMED_OUT, 1), (None, 1)])
def test_a_step_without_consent_is_not_issued(
    bench: Any, task: MakeTask, let: Any, answer: str | None, asks: int
) -> None:
    let(Person(answer), "step:*")
    worker = hands(ScriptedStep(tree="good", events=DONE))
    ended = bench.run(worker, task())
    assert ended.stop == StopReason(Axis.DEFER, "approval")
    assert (len(ended.drafts), worker.requests) == (asks, [])


def test_nobody_there_means_that_the_step_waits_as_a_decision(
    bench: Any, task: MakeTask, let: Any
) -> None:
    let(None, "area:billing")
    worker = hands(ScriptedStep(tree="good", events=DONE))
    bench.gate.passing = frozenset({"good"})
    assert len(bench.run(worker, task(area=("billing",))).drafts) == 1
    assert bench.run(worker, task("T2", area=("other",))).is_passed
