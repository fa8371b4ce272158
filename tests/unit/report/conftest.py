from collections.abc import Callable, Sequence

import pytest

from loopctl.domain import Axis, DecisionKind, RunStatus, Scope, TaskId, TaskStatus, Usage, Wait
from loopctl.events import (
    AnyEvent,
    CandidateEnded,
    DecisionRaised,
    ForkResolved,
    GateFinished,
    Noticed,
    RunEnded,
    RunStarted,
    StatusChanged,
    StepFinished,
    StepStarted,
    TaskClaimed,
    TaskLanded,
    TaskStopped,
)
from loopctl.plan import StepProgress
from loopctl.suggestions import AssumptionRecorded
from loopctl.verdict import Blame, Check, CheckResult, Verdict

Number = Callable[[Sequence[AnyEvent]], tuple[AnyEvent, ...]]

APPLY = CheckResult(Check.APPLY, Verdict.PASS, ms=2)
RED = CheckResult(
    Check.VERIFY,
    Verdict.FAIL,
    Blame.INTRODUCED,
    reason="one test fails",
    command="pytest -q",
    exit=1,
    ms=90,
    tail="FAILED tests/test_a.py",
)
GREEN = CheckResult(Check.VERIFY, Verdict.PASS, command="pytest -q", exit=0, ms=80)
VACUOUS = CheckResult(Check.VERIFY, Verdict.PASS, command="true", exit=0, ms=1, vacuous=True)


@pytest.fixture
def number() -> Number:
    """Number and stamp events as the log does."""

    def numbered(events: Sequence[AnyEvent]) -> tuple[AnyEvent, ...]:
        return tuple(
            event.model_copy(
                update={"seq": seq, "ts": f"2026-11-30T18:45:{seq:02d}.000Z", "run": "r1"}
            )
            for seq, event in enumerate(events, 1)
        )

    return numbered


def _landed() -> list[AnyEvent]:
    """A1 lands after its gate has failed once."""
    progress = StepProgress()
    usage = Usage(10, 5, 0.25)
    return [
        TaskClaimed(task="A1", title="Fix imports", worker="command"),
        StatusChanged(task="A1", old=TaskStatus.TODO, new=TaskStatus.IN_PROGRESS, signal="claimed"),
        StepStarted(task="A1", candidate="main", iteration=1, step_goal="fix it"),
        StepFinished(
            task="A1",
            candidate="main",
            iteration=1,
            tree="t1",
            ms=5,
            progress=progress,
            usage=usage,
        ),
        GateFinished(task="A1", candidate="main", head="h0", tree="t1", checks=(APPLY, RED)),
        StepStarted(task="A1", candidate="main", iteration=2, step_goal="fix it"),
        StepFinished(
            task="A1",
            candidate="main",
            iteration=2,
            tree="t2",
            ms=5,
            progress=progress,
            usage=usage,
        ),
        GateFinished(task="A1", candidate="main", head="h0", tree="t2", checks=(APPLY, GREEN)),
        AssumptionRecorded(task="A1", candidate="main", text="UTF-8 only", decision="encoding"),
        TaskLanded(
            task="A1", commit="c1" * 20, tree="t2", branch="loop/integration", key="k1", files=3
        ),
        StatusChanged(task="A1", old=TaskStatus.IN_PROGRESS, new=TaskStatus.DONE, signal="landed"),
        TaskStopped(task="A1", axis=Axis.GOAL, reason="goal", steps=2, usage=Usage(20, 10, 0.5)),
    ]


def _options() -> list[AnyEvent]:
    """B1 has two options; the gate picks regex, whose verify is vacuous."""
    return [
        TaskClaimed(task="B1", title="Parse rows", worker="command"),
        GateFinished(task="B1", candidate="parser", head="h0", tree="t3", checks=(APPLY, RED)),
        GateFinished(task="B1", candidate="regex", head="h0", tree="t4", checks=(APPLY, VACUOUS)),
        CandidateEnded(
            task="B1",
            name="regex",
            verdict=Verdict.PASS,
            ref="refs/loop/r1/B1/regex",
            changed_lines=4,
        ),
        CandidateEnded(
            task="B1",
            name="parser",
            verdict=Verdict.FAIL,
            ref="refs/loop/r1/B1/parser",
            reason="red",
        ),
        ForkResolved(task="B1", winner="regex", reason="the only one that passes"),
        TaskLanded(
            task="B1", commit="c2" * 20, tree="t4", branch="loop/integration", key="k2", files=1
        ),
        TaskStopped(task="B1", axis=Axis.GOAL, reason="goal", steps=2),
    ]


def _open_ends() -> list[AnyEvent]:
    """C1 defers, D1 waits for it, E1 is stuck, F1 rests on something false, G1 never ran."""
    return [
        TaskClaimed(task="C1", title="Log in", worker="command"),
        DecisionRaised(
            task="C1",
            id="C1.1",
            kind=DecisionKind.EXTERNAL,
            question="Which provider?",
            best_guess="use OAuth",
            options=("OAuth", "SAML"),
            reason="no account",
        ),
        StatusChanged(
            task="C1", old=TaskStatus.IN_PROGRESS, new=TaskStatus.NEEDS_HUMAN, signal="deferred"
        ),
        TaskStopped(task="C1", axis=Axis.DEFER, reason="external", steps=1),
        TaskClaimed(task="E1", title="Hard one", worker="command"),
        GateFinished(task="E1", candidate="main", head="h0", tree="t9", checks=(APPLY, RED)),
        StatusChanged(
            task="E1", old=TaskStatus.IN_PROGRESS, new=TaskStatus.STUCK, signal="stalled"
        ),
        TaskStopped(
            task="E1",
            axis=Axis.STALL,
            reason="no_progress",
            steps=3,
            result="half of it",
            ref="refs/loop/r1/E1/main",
        ),
        TaskClaimed(task="F1", title="Wrong idea", worker="command"),
        DecisionRaised(
            task="F1", id="F1.1", kind=DecisionKind.PREMISE, question="There is no such file."
        ),
        StatusChanged(
            task="F1", old=TaskStatus.IN_PROGRESS, new=TaskStatus.NEEDS_HUMAN, signal="deferred"
        ),
        TaskStopped(task="F1", axis=Axis.DEFER, reason="premise", steps=1),
        Noticed(text="commands ran unconfined"),
        Noticed(text="2 uncommitted files are no part of this run", level="info"),
    ]


@pytest.fixture
def story(number: Number) -> tuple[AnyEvent, ...]:
    """A whole run in which each kind of end occurs."""
    ids = ("A1", "B1", "C1", "D1", "E1", "F1", "G1")
    titles = ("Fix imports", "Parse rows", "Log in", "Log out", "Hard one", "Wrong idea", "Old one")
    started = RunStarted(
        goal="Ship it",
        base="b0" * 20,
        branch="loop/integration",
        scope=Scope(ids=(TaskId("A1"),)),
        tasks=tuple(zip(ids, titles, strict=True)),
        settings_hash="cafe",
        statuses=(("G1", TaskStatus.DONE),),
    )
    ended = RunEnded(
        status=RunStatus.NEEDS_HUMAN,
        exit_code=3,
        head="c2" * 20,
        waits=(
            Wait(TaskId("C1"), "needs an answer"),
            Wait(TaskId("D1"), "waits for C1 (needs-human)"),
            Wait(TaskId("E1"), "stuck"),
        ),
    )
    return number([started, *_landed(), *_options(), *_open_ends(), ended])
