"""A step that the machine cuts short: taken again as it was, and asked about when that lasts."""

from collections.abc import Callable
from typing import Any

import pytest

from loopctl.calls import ApprovalRequired, ToolCall
from loopctl.domain import APPROVED, Axis, Decision, DecisionKind, Sha, StopReason, Task
from loopctl.engine.taskrun import Start
from loopctl.errors import CancelledError, EnvironmentFaultError
from loopctl.records import Rescued
from loopctl.steps import (
    OutputTail,
    PlanProposed,
    StepEvent,
    TodoDone,
    ToolCallStarted,
    interrupt_for,
)
from loopctl.testing import MemoryReplies, ScriptedStep, ScriptedWorker
from loopctl.verdict import Blame, Check, CheckResult, Verdict

MakeTask = Callable[..., Task]
DONE: tuple[StepEvent, ...] = (OutputTail(0, "ok"), TodoDone("did it"))
FAULT = EnvironmentFaultError("the model's process is gone; start it again.")
CALL = ToolCall("r1/T1/main", 1, 0, "pay", {})


class Faulty(ScriptedWorker):
    """Plays its steps; those whose number is among ``cut`` end in a fault of the machine."""

    def __init__(self, steps: Any, *cut: int, makes_plans: bool = False) -> None:
        super().__init__(steps, makes_plans=makes_plans)
        self.cut = cut

    def execute_step(self, request: Any, sandbox: Any) -> Any:
        number = len(self.requests)
        yield from super().execute_step(request, sandbox)
        if number in self.cut:
            raise FAULT


def steps(*trees: str) -> list[ScriptedStep]:
    return [ScriptedStep(tree, DONE, answer=tree) for tree in trees]


def test_cut_step_is_taken_again_on_the_files_before_it_and_costs_nothing(
    bench: Any, task: MakeTask
) -> None:
    bench.gate.passing = frozenset({"good"})
    seen = []

    class Looks(Faulty):
        def execute_step(self, request: Any, sandbox: Any) -> Any:
            seen.append(sandbox.tree)
            yield from super().execute_step(request, sandbox)

    bench.more["replies"] = MemoryReplies({("r1/T1/main", 2, 0): "reply"})
    hands = Looks(steps("a", "ruin", "good"), 1)
    ended = bench.run(hands, task())
    assert ended.is_passed
    assert seen == ["base", "a", "a"]
    assert hands.requests[1] == hands.requests[2]
    assert hands.requests[2].replies == ("reply",)
    assert hands.requests[2].observation == "gate: verify is red"
    assert ended.plan.budget.loops_used == 2
    assert [iteration for _, iteration, _ in bench.sessions.saved] == [1, 2]


def test_what_a_cut_step_had_written_is_kept_and_said(bench: Any, task: MakeTask) -> None:
    bench.gate.passing = frozenset({"good"})
    bench.run(Faulty(steps("ruin", "good"), 0), task())
    trees = {ref: bench.repository.trees[commit] for ref, commit in bench.repository.refs.items()}
    assert trees == {"refs/loop/r1/T1/main+interrupted": "ruin", "refs/loop/r1/T1/main": "good"}
    said = [event.text for event in bench.of("noticed")]
    assert said == [
        f"step 1 (main) was cut short: {FAULT}",
        "what a step that was cut short had made is kept as refs/loop/r1/T1/main+interrupted",
    ]


def test_second_cut_step_does_not_take_the_place_of_the_first(bench: Any, task: MakeTask) -> None:
    bench.run(Faulty(steps("ruin", "worse"), 0, 1), task())
    kept = {ref: bench.repository.trees[commit] for ref, commit in bench.repository.refs.items()}
    ref = "refs/loop/r1/T1/main+interrupted"
    assert kept == {ref: "ruin", f"{ref}-2": "worse"}


def test_fault_that_lasts_becomes_a_question_and_the_step_stays_begun(
    bench: Any, task: MakeTask
) -> None:
    hands = Faulty(steps("a", "b", "b", "good"), 1, 2)
    ended = bench.run(hands, task())
    assert ended.stop == StopReason(Axis.DEFER, "environment")
    assert [draft.kind for draft in ended.drafts] == [DecisionKind.ENVIRONMENT]
    assert ended.drafts[0].question.startswith(
        "T1 cannot go on: the model's process is gone; start it again. Mend it"
    )
    assert (ended.tree, ended.plan.budget.loops_used, len(hands.requests)) == ("a", 1, 3)
    assert [iteration for _, iteration, _ in bench.sessions.saved] == [1]
    # After the answer it is the same step of the same iteration.
    bench.gate.passing = frozenset({"good"})
    answer = Decision("T1.1", "T1", "r1", DecisionKind.ENVIRONMENT, "?", answer="mended")
    again = ScriptedWorker(steps("good"))
    assert bench.run(again, task(), Start(head=Sha("c1"), answers=(answer,))).is_passed
    assert (again.requests[0].loop_iteration, again.requests[0].first_call) == (2, 0)


def test_one_counter_bounds_cut_steps_and_gates_that_could_not_judge(
    bench: Any, task: MakeTask
) -> None:
    bench.gate.scripted = [
        CheckResult(Check.VERIFY, Verdict.UNKNOWN, Blame.ENVIRONMENT, reason="no disk")
    ]
    hands = Faulty(steps("a", "a"), 0)
    ended = bench.run(hands, task())
    assert ended.stop == StopReason(Axis.DEFER, "environment")
    assert (len(hands.requests), len(bench.gate.seen)) == (2, 1)


def test_one_counter_bounds_cut_planning_steps_and_those_whose_command_never_ran(
    bench: Any, task: MakeTask
) -> None:
    missing = ScriptedStep(events=(OutputTail(127, "not found", is_environment=True),))
    hands = Faulty([ScriptedStep(), missing], 0, makes_plans=True)
    ended = bench.run(hands, task())
    assert ended.stop == StopReason(Axis.DEFER, "environment")
    assert [request.is_planning for request in hands.requests] == [True, True]


def test_cut_planning_step_is_taken_again_with_the_same_numbers(bench: Any, task: MakeTask) -> None:
    bench.gate.passing = frozenset({"good"})
    plan = ScriptedStep(events=(ToolCallStarted(0, "read"), PlanProposed(("one",))))
    hands = Faulty([plan, plan, *steps("good")], 0, makes_plans=True)
    assert bench.run(hands, task()).is_passed
    assert hands.requests[0] == hands.requests[1]
    assert hands.requests[2].first_call == 1
    assert len(bench.of("plan_created")) == 1


def test_step_cut_after_its_planning_goes_on_with_the_plan_and_the_ordinals(
    bench: Any, task: MakeTask
) -> None:
    bench.gate.passing = frozenset({"good"})
    plan = ScriptedStep(events=(ToolCallStarted(0, "read"), PlanProposed(("one",))))
    hands = Faulty([plan, *steps("half", "good")], 1, makes_plans=True)
    assert bench.run(hands, task()).is_passed
    assert [request.is_planning for request in hands.requests] == [True, False, False]
    assert hands.requests[1] == hands.requests[2]
    assert (hands.requests[2].first_call, hands.requests[2].loop_iteration) == (1, 1)


def test_nothing_that_a_cut_step_said_counts(bench: Any, task: MakeTask) -> None:
    hands = Faulty(steps("good", "good"), 0, 1)
    bench.gate.passing = frozenset({"good"})
    ended = bench.run(hands, task())
    assert not ended.is_passed
    assert bench.gate.seen == []
    assert bench.of("step_finished") == []


def test_fault_before_the_first_event_is_one_too(bench: Any, task: MakeTask) -> None:
    class Eager(ScriptedWorker):
        def execute_step(self, request: Any, sandbox: Any) -> Any:
            assert sandbox.tree == "base"
            self.requests.append(request)
            raise FAULT

    hands = Eager([])
    assert bench.run(hands, task()).stop == StopReason(Axis.DEFER, "environment")
    assert len(hands.requests) == 2


def test_interrupted_step_that_is_cut_when_it_is_taken_up_again_goes_on_from_there(
    bench: Any, task: MakeTask
) -> None:
    waiting = interrupt_for(ApprovalRequired(CALL), b"blob")
    bench.run(ScriptedWorker([ScriptedStep("half", (waiting,))]), task())
    answer = Decision(
        "T1.1", "T1", "r1", DecisionKind.APPROVAL, "?", answer=APPROVED, call_key=CALL.key
    )
    bench.gate.passing = frozenset({"good"})
    hands = Faulty(steps("ruin", "good"), 0)
    assert bench.run(hands, task(), Start(head=Sha("c1"), answers=(answer,))).is_passed
    assert hands.requests[0] == hands.requests[1]
    resume = hands.requests[1].resume
    assert resume is not None
    assert resume.blob == b"blob"


def test_fault_after_an_interrupt_does_not_lose_it(bench: Any, task: MakeTask) -> None:
    waiting = interrupt_for(ApprovalRequired(CALL), b"blob")
    ended = bench.run(Faulty([ScriptedStep("half", (waiting,))], 0), task())
    assert ended.stop == StopReason(Axis.DEFER, "approval")
    assert bench.sessions.records["r1/T1/main"].interrupt.blob == b"blob"


def test_files_that_cannot_be_saved_are_left_and_the_step_is_not_taken_on_them(
    bench: Any, task: MakeTask
) -> None:
    class Vandal(Faulty):
        def execute_step(self, request: Any, sandbox: Any) -> Any:
            sandbox.is_broken = True
            sandbox.rescued = Rescued(folder="/the/worktree", why="the disk is full")
            yield from super().execute_step(request, sandbox)

    hands = Vandal(steps("work", "work"), 0)
    ended = bench.run(hands, task())
    assert len(hands.requests) == 1
    assert "its files are left in /the/worktree" in ended.drafts[0].question


def test_pause_is_heeded_before_a_cut_step_is_taken_again(bench: Any, task: MakeTask) -> None:
    class Pause:
        is_heeded = False

        def is_asked(self) -> bool:
            asked, self.is_heeded = self.is_heeded, True
            return asked

    bench.more["pause"] = Pause()
    hands = Faulty(steps("a", "good"), 0)
    with pytest.raises(CancelledError, match="pause"):
        bench.run(hands, task())
    assert (len(hands.requests), bench.sessions.saved) == (1, [])
