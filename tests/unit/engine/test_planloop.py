from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest

from loopctl.domain import (
    Axis,
    Decision,
    DecisionDraft,
    DecisionKind,
    Limits,
    Option,
    Sha,
    StopReason,
    Task,
)
from loopctl.engine.taskrun import Start
from loopctl.errors import CancelledError, SandboxError
from loopctl.plan import PlanStatus, TodoStatus
from loopctl.records import Rescued
from loopctl.steps import (
    Deferred,
    ForkRaised,
    MessageMalformed,
    OutputTail,
    PremiseInvalid,
    StepEvent,
    TodoDone,
    ToolCallStarted,
)
from loopctl.testing import ScriptedStep, ScriptedWorker
from loopctl.verdict import Blame, Check, CheckResult, Verdict

MakeTask = Callable[..., Task]
MakeWorker = Callable[..., ScriptedWorker]
DONE: tuple[StepEvent, ...] = (OutputTail(0, "ok"), TodoDone("did it"))
RED: tuple[StepEvent, ...] = (OutputTail(1, "red"),)


def test_healthy_worker_ends_complete_after_two_steps(
    bench: Any, task: MakeTask, worker: MakeWorker
) -> None:
    bench.gate.passing = frozenset({"good"})
    hands = worker(
        ScriptedStep(tree="half", events=DONE, answer="a"),
        ScriptedStep(tree="good", events=DONE, answer="b"),
    )
    ended = bench.run(hands, task())
    assert ended.stop == StopReason(Axis.GOAL, "goal_met")
    assert (ended.tree, ended.plan.budget.loops_used, ended.plan.status) == (
        "good",
        2,
        PlanStatus.COMPLETE,
    )
    assert hands.requests[1].observation == "gate: verify is red"


def test_looping_worker_stalls_on_no_progress_after_three_steps(
    bench: Any, task: MakeTask, worker: MakeWorker
) -> None:
    ended = bench.run(worker(ScriptedStep(events=DONE, answer="same")), task())
    assert ended.stop == StopReason(Axis.STALL, "no_progress")
    assert ended.plan.budget.loops_used == 3
    assert ended.plan.status is PlanStatus.STALLED


def test_worker_that_says_something_new_and_changes_nothing_stalls_on_its_tree(
    bench: Any, task: MakeTask, worker: MakeWorker
) -> None:
    hands = worker(*(ScriptedStep(events=RED, answer=f"new {n}") for n in range(30)))
    ended = bench.run(hands, task())
    assert ended.stop == StopReason(Axis.STALL, "unchanged_tree")
    assert ended.plan.budget.loops_used == 6


def test_worker_that_changes_something_at_every_step_ends_on_its_budget(
    bench: Any, task: MakeTask, worker: MakeWorker
) -> None:
    hands = worker(*(ScriptedStep(tree=f"t{n}", events=RED, answer=f"{n}") for n in range(30)))
    ended = bench.run(hands, task(budget=Limits(loops=7)))
    assert ended.stop == StopReason(Axis.BUDGET, "loops")
    assert len(hands.requests) == 7
    assert [draft.kind for draft in ended.drafts] == [DecisionKind.BUDGET]
    assert "loops=N" in ended.drafts[0].question


def test_worker_that_goes_round_in_a_ring_of_old_trees_makes_no_artifacts(
    bench: Any, task: MakeTask, worker: MakeWorker
) -> None:
    ring = [ScriptedStep(tree=tree, events=RED, answer="same") for tree in "ababababab"]
    ended = bench.run(worker(*ring), task())
    assert ended.stop == StopReason(Axis.STALL, "no_progress")
    assert ended.plan.budget.loops_used == 5


def test_goal_met_on_the_last_step_of_the_budget_is_done(
    bench: Any, task: MakeTask, worker: MakeWorker
) -> None:
    bench.gate.passing = frozenset({"good"})
    hands = worker(ScriptedStep(tree="x", events=RED), ScriptedStep(tree="good", events=DONE))
    assert bench.run(hands, task(budget=Limits(loops=2))).is_passed


def test_budget_of_zero_steps_takes_no_step(bench: Any, task: MakeTask, worker: MakeWorker) -> None:
    hands = worker(ScriptedStep(tree="good", events=DONE))
    ended = bench.run(hands, task(budget=Limits(loops=0)))
    assert (ended.stop, hands.requests) == (StopReason(Axis.BUDGET, "loops"), [])


def test_wall_budget_stops_the_next_step(bench: Any, task: MakeTask, worker: MakeWorker) -> None:
    hands = worker(*(ScriptedStep(tree=f"t{n}", events=RED, seconds=6) for n in range(9)))
    ended = bench.run(hands, task(budget=Limits(wall_s=10)))
    assert (ended.stop, len(hands.requests)) == (StopReason(Axis.BUDGET, "wall"), 2)


def test_words_of_a_worker_never_end_a_task(bench: Any, task: MakeTask, worker: MakeWorker) -> None:
    boast = (OutputTail(1, "All done, every test passes, task complete."),)
    ended = bench.run(worker(ScriptedStep(events=boast, answer="x")), task())
    assert ended.stop.axis is Axis.STALL
    assert bench.gate.seen == []


def test_defer_message_ends_the_task_for_now_with_its_question(
    bench: Any, task: MakeTask, worker: MakeWorker
) -> None:
    draft = DecisionDraft(DecisionKind.EXTERNAL, "Which account?", "the shared one")
    hands = worker(ScriptedStep(tree="half", events=(OutputTail(0, ""), Deferred(draft))))
    ended = bench.run(hands, task())
    assert (ended.stop.axis, ended.drafts, ended.tree) == (Axis.DEFER, (draft,), "half")
    assert bench.gate.seen == []


def test_fork_and_premise_become_decisions(bench: Any, task: MakeTask, worker: MakeWorker) -> None:
    fork = ForkRaised("How far?", "scope", (Option("narrow"), Option("wide")), "narrow")
    ended = bench.run(worker(ScriptedStep(events=(fork,))), task())
    assert (ended.drafts[0].kind, ended.drafts[0].options) == (
        DecisionKind.SCOPE,
        ("narrow", "wide"),
    )
    lie = PremiseInvalid("the API has no such call", "docs page 3")
    ended = bench.run(worker(ScriptedStep(events=(lie,))), task("T2"))
    assert ended.drafts[0].kind is DecisionKind.PREMISE


def test_malformed_message_is_shown_to_the_worker_and_ends_nothing(
    bench: Any, task: MakeTask, worker: MakeWorker
) -> None:
    bench.gate.passing = frozenset({"good"})
    hands = worker(
        ScriptedStep(tree="x", events=(OutputTail(1, "said"), MessageMalformed("no type"))),
        ScriptedStep(tree="good", events=DONE),
    )
    assert bench.run(hands, task()).is_passed
    assert "no type" in hands.requests[1].observation
    assert "said" in hands.requests[1].observation
    assert [event.type for event in bench.of("message_rejected")] == ["message_rejected"]


def test_unverifiable_result_asks_how_to_verify_and_is_never_done(
    bench: Any, task: MakeTask, worker: MakeWorker
) -> None:
    bench.gate.scripted = [CheckResult(Check.APPLY, Verdict.PASS)]
    ended = bench.run(worker(ScriptedStep(tree="x", events=DONE)), task(verify_cmd=None))
    assert (ended.stop, ended.drafts[0].kind) == (
        StopReason(Axis.DEFER, "verify"),
        DecisionKind.VERIFY,
    )


def test_answer_to_how_to_verify_is_the_verify_command_and_the_kept_tree_is_gated_first(
    bench: Any, task: MakeTask, worker: MakeWorker
) -> None:
    bench.gate.scripted = [CheckResult(Check.APPLY, Verdict.PASS)]
    bench.gate.passing = frozenset({"x"})
    hands = worker(ScriptedStep(tree="x", events=DONE))
    draft = bench.run(hands, task(verify_cmd=None)).drafts[0]
    answered = Decision("T1.1", "T1", "r1", draft.kind, "?", reason=draft.reason, answer="make ok")
    ended = bench.run(hands, task(verify_cmd=None), Start(head=Sha("c1"), answers=(answered,)))
    assert ended.is_passed
    assert len(hands.requests) == 1
    assert bench.gate.seen[-1].task.verify_cmd == "make ok"


def test_environment_fault_of_a_step_is_no_step_and_becomes_a_decision_when_it_lasts(
    bench: Any, task: MakeTask, worker: MakeWorker
) -> None:
    missing = (OutputTail(127, "nosuch: not found", is_environment=True),)
    hands = worker(ScriptedStep(events=missing))
    ended = bench.run(hands, task())
    assert ended.stop == StopReason(Axis.DEFER, "environment")
    assert (ended.plan.budget.loops_used, len(hands.requests)) == (0, 2)


@pytest.mark.parametrize("blame", [Blame.ENVIRONMENT, Blame.FLAKY])
def test_gate_that_could_not_judge_is_asked_again_and_costs_the_worker_no_step(
    bench: Any, task: MakeTask, worker: MakeWorker, blame: Blame
) -> None:
    fault = CheckResult(Check.VERIFY, Verdict.UNKNOWN, blame, reason="no disk space")
    bench.gate.scripted = [fault]
    bench.gate.passing = frozenset({"good"})
    hands = worker(ScriptedStep(tree="good", events=DONE))
    assert bench.run(hands, task()).is_passed
    bench.gate.scripted = [fault, fault]
    ended = bench.run(hands, task("T2"))
    assert ended.stop == StopReason(Axis.DEFER, "environment")
    assert "no disk space" in ended.drafts[0].question


def test_step_that_destroys_its_worktree_is_put_back_and_told(
    bench: Any, task: MakeTask, worker: MakeWorker
) -> None:
    bench.gate.passing = frozenset({"good"})

    class Vandal(ScriptedWorker):
        def execute_step(self, request: Any, sandbox: Any) -> Any:
            yield from super().execute_step(request, sandbox)
            sandbox.is_broken = len(self.requests) == 1

    hands = Vandal([ScriptedStep(tree="ruin", events=DONE), ScriptedStep(tree="good", events=DONE)])
    ended = bench.run(hands, task())
    assert ended.is_passed
    assert "the worktree is gone" in hands.requests[1].observation
    assert "put back" in hands.requests[1].observation


def test_files_that_cannot_even_be_rescued_stay_and_a_human_is_asked(
    bench: Any, task: MakeTask, worker: MakeWorker
) -> None:
    trees = []

    class Vandal(ScriptedWorker):
        def execute_step(self, request: Any, sandbox: Any) -> Any:
            yield from super().execute_step(request, sandbox)
            sandbox.is_broken = True
            sandbox.rescued = Rescued(folder="/the/worktree", why="the disk is full")
            trees.append(sandbox)

    ended = bench.run(Vandal([ScriptedStep(tree="work", events=DONE)]), task())
    assert ended.stop == StopReason(Axis.DEFER, "environment")
    assert "/the/worktree" in ended.drafts[0].question
    assert [sandbox.tree for sandbox in trees] == ["work", "work"]
    assert ended.plan.budget.loops_used == 0
    [cause, first, *_] = bench.of("noticed")
    assert cause.text == "a step was not kept: the worktree is gone"
    assert (first.task, first.level) == ("T1", "warning")
    assert "the disk is full" in first.text


@pytest.mark.parametrize("fault", [CancelledError("stop"), SandboxError("gone"), ValueError("bug")])
def test_a_step_that_is_cut_short_is_rescued_before_its_worktree_goes(
    bench: Any, task: MakeTask, fault: Exception
) -> None:
    opened = []

    class CutShort(ScriptedWorker):
        def execute_step(self, request: Any, sandbox: Any) -> Any:
            assert request.loop_iteration == 1
            assert sandbox.name in bench.repository.open
            sandbox.rescued = Rescued("refs/loop/r1/T1/main+interrupted")
            opened.append(sandbox)
            raise fault

    with pytest.raises(type(fault)):
        bench.run(CutShort([]), task())
    assert [sandbox.rescues for sandbox in opened] == [1]
    assert bench.repository.open == set()
    assert bench.of("noticed")[0].text.endswith("kept as refs/loop/r1/T1/main+interrupted")


def test_every_step_is_kept_and_saved_before_the_next(
    bench: Any, task: MakeTask, worker: MakeWorker
) -> None:
    bench.gate.passing = frozenset({"t2"})
    hands = worker(*(ScriptedStep(tree=f"t{n}", events=DONE, answer=f"{n}") for n in range(3)))
    bench.run(hands, task())
    saved = [(iteration, point.tree) for _, iteration, point in bench.sessions.saved]
    assert saved == [(1, "t0"), (2, "t1"), (3, "t2")]
    assert bench.repository.trees[bench.repository.refs["refs/loop/r1/T1/main"]] == "t2"


def test_resumed_session_goes_on_from_its_kept_tree_with_the_answer(
    bench: Any, task: MakeTask, worker: MakeWorker
) -> None:
    draft = DecisionDraft(DecisionKind.EXTERNAL, "Which?")
    hands = worker(ScriptedStep(tree="half", events=(Deferred(draft),)))
    bench.run(hands, task())
    answered = Decision("T1.1", "T1", "r1", draft.kind, "Which?", answer="the blue one")
    bench.gate.passing = frozenset({"half"})
    again = worker(ScriptedStep(events=DONE))
    ended = bench.run(again, task(), Start(head=Sha("c1"), answers=(answered,)))
    assert ended.is_passed
    assert (again.requests[0].answer, again.requests[0].loop_iteration) == ("the blue one", 2)
    assert ended.plan.budget.loops_used == 2


def test_raised_cap_lets_a_spent_task_go_on(bench: Any, task: MakeTask, worker: MakeWorker) -> None:
    short = task(budget=Limits(loops=1))
    hands = worker(ScriptedStep(tree="t1", events=RED), ScriptedStep(tree="good", events=DONE))
    assert bench.run(hands, short).stop.axis is Axis.BUDGET
    bench.gate.passing = frozenset({"good"})
    answered = Decision(
        "T1.1", "T1", "r1", DecisionKind.BUDGET, "?", answer="yes", raised=Limits(loops=2)
    )
    assert bench.run(hands, short, Start(head=Sha("c1"), answers=(answered,))).is_passed


def test_cancelled_step_leaves_the_last_checkpoint_and_no_sandbox(
    bench: Any, task: MakeTask
) -> None:
    class Stopped(ScriptedWorker):
        def execute_step(self, request: Any, sandbox: Any) -> Any:
            if self.requests:
                raise CancelledError("stop")
            yield from super().execute_step(request, sandbox)

    with pytest.raises(CancelledError):
        bench.run(Stopped([ScriptedStep(tree="t1", events=RED)]), task())
    assert [iteration for _, iteration, _ in bench.sessions.saved] == [1]
    assert bench.repository.open == set()


def test_goal_is_the_same_in_every_request(bench: Any, task: MakeTask, worker: MakeWorker) -> None:
    hands = worker(ScriptedStep(events=RED, answer="x"))
    bench.run(hands, task())
    assert {request.goal.text for request in hands.requests} == {"the goal"}
    assert bench.sessions.saved[-1][2].plan.goal == "the goal"


def test_reopened_todo_is_open_in_the_checkpoint(
    bench: Any, task: MakeTask, worker: MakeWorker
) -> None:
    bench.run(worker(ScriptedStep(events=DONE, answer="x")), task())
    plan = bench.sessions.saved[0][2].plan
    assert plan.todos[0].status is TodoStatus.ACTIVE
    assert plan.progress[0] == replace(plan.progress[0], todo_completed=False)


def calls(*hashes: str) -> tuple[StepEvent, ...]:
    return tuple(ToolCallStarted(n, "search", digest) for n, digest in enumerate(hashes))


def test_same_call_again_and_again_inside_a_step_stops_the_worker(
    bench: Any, task: MakeTask
) -> None:
    class Endless(ScriptedWorker):
        was_closed = False

        def execute_step(self, request: Any, sandbox: Any) -> Any:
            self.requests.append(request)
            sandbox.restore("half")
            try:
                for n in range(1000):
                    yield ToolCallStarted(n, "search", "same")
            finally:
                self.was_closed = True

    hands = Endless([])
    ended = bench.run(hands, task())
    assert ended.stop == StopReason(Axis.STALL, "worker_stuck")
    assert (hands.was_closed, len(hands.requests), ended.tree) == (True, 1, "half")


@pytest.mark.parametrize(
    "hashes",
    [("a",) * 5, ("a", "b") * 10, ("",) * 20, ("a",) * 5 + ("b",) + ("a",) * 5],
    ids=["fewer", "taking turns", "not compared", "interrupted"],
)
def test_other_sequences_of_calls_inside_a_step_stop_nothing(
    bench: Any, task: MakeTask, worker: MakeWorker, hashes: tuple[str, ...]
) -> None:
    bench.gate.passing = frozenset({"good"})
    hands = worker(ScriptedStep(tree="good", events=(*calls(*hashes), *DONE)))
    assert bench.run(hands, task()).is_passed
