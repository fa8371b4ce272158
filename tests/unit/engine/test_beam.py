"""A fork of quality inside a task: its options are tried, the gate picks, the plan goes on."""

import threading
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
from loopctl.errors import CancelledError
from loopctl.plan import Plan, TodoStatus, decode, encode
from loopctl.settings import SandboxSettings
from loopctl.steps import (
    Deferred,
    PlanProposed,
    StepRequest,
    TodoDone,
)
from loopctl.verdict import Blame, Check, CheckResult, Verdict
from tests.unit.engine.hands import DONE, RED, Did, Hands, fork, forking, still_red

MakeTask = Callable[..., Task]


def width(bench: Any, beam_width: int) -> None:
    settings = SandboxSettings(beam_width=beam_width)
    bench.settings = bench.settings.model_copy(update={"sandbox": settings})


def test_the_smallest_passing_option_wins_and_is_the_end_of_the_task(
    bench: Any, task: MakeTask
) -> None:
    bench.gate.passing = frozenset({"a long result", "short"})
    hands = Hands(forking(regex="a long result", parser="short"))
    ended = bench.run(hands, task())
    assert ended.stop == StopReason(Axis.GOAL, "goal_met")
    assert (ended.candidate, ended.tree, ended.ref) == ("main", "short", "refs/loop/r1/T1/main")
    assert ended.gate is not None
    assert ended.gate.is_passed
    assert bench.repository.open == set()
    assert bench.repository.trees[bench.repository.refs[ended.ref]] == "short"
    assert [event.winner for event in bench.of("fork_resolved")] == ["main.1.2-parser"]


def test_each_option_begins_at_the_forks_tree_and_the_losers_tree_is_kept(
    bench: Any, task: MakeTask
) -> None:
    bench.gate.passing = frozenset({"short"})
    bench.run(Hands(forking(regex="bad", parser="short")), task(budget=Limits(loops=6)))
    opened = {event.candidate: event.tree for event in bench.of("sandbox_opened")}
    assert opened == {"main": "base", "main.1.1-regex": "half", "main.1.2-parser": "half"}
    ref = "refs/loop/r1/T1/main.1.1-regex"
    assert bench.repository.trees[bench.repository.refs[ref]] == "bad"


def test_each_tree_is_judged_once_the_winners_too(bench: Any, task: MakeTask) -> None:
    bench.gate.passing = frozenset({"one", "the other"})
    bench.run(Hands(forking(regex="one", parser="the other")), task())
    assert sorted(candidate.tree for candidate in bench.gate.seen) == ["one", "the other"]


def test_options_are_tried_with_the_cheap_model_whatever_the_task_says(
    bench: Any, task: MakeTask
) -> None:
    bench.gate.passing = frozenset({"one"})
    hands = Hands(forking(regex="one", parser="two"))
    bench.run(hands, task(model="premium", budget=Limits(loops=9)))
    tiers = {request.candidate: request.tier for request in hands.requests}
    assert tiers["main"] == "premium"
    assert {tiers["main.1.1-regex"], tiers["main.1.2-parser"]} == {"cheap"}


def planned(request: StepRequest) -> Did | None:
    if request.is_planning:
        return None, (PlanProposed(("first", "second", "third")),)
    return None


def test_amid_a_plan_what_makes_nothing_worse_holds_and_the_plan_goes_on_from_it(
    bench: Any, task: MakeTask
) -> None:
    still_red(bench)
    bench.gate.passing = frozenset({"whole"})

    def does(request: StepRequest) -> Did:
        if plan := planned(request):
            return plan
        if request.option is not None:
            return f"half {request.option.name}", DONE
        if request.step_goal == "first":
            return None, (fork("parser", "regex"),)
        return ("whole", DONE) if request.step_goal == "third" else (None, DONE)

    hands = Hands(does, makes_plans=True)
    ended = bench.run(hands, task())
    assert (ended.stop.axis, ended.tree) == (Axis.GOAL, "whole")
    later = [request for request in hands.of("main") if not request.is_planning]
    assert [request.step_goal for request in later] == ["first", "second", "third"]
    trees = [event.tree for event in bench.of("sandbox_opened") if event.candidate == "main"]
    assert trees == ["base", "half regex"]
    statuses = [todo.status for todo in ended.plan.todos]
    assert statuses == [TodoStatus.DONE] * 3
    assert ended.plan.todos[0].summary == "did it"


def test_amid_a_plan_what_the_candidate_has_broken_does_not_hold(
    bench: Any, task: MakeTask
) -> None:
    bench.gate.failing = CheckResult(Check.VERIFY, Verdict.FAIL, Blame.INTRODUCED, reason="broke")
    seen: list[str] = []

    def does(request: StepRequest) -> Did:
        if plan := planned(request):
            return plan
        if request.option is not None:
            return request.option.name, DONE
        if len(seen) or "none passed" in request.observation:
            seen.append(request.observation)
            return None, (Deferred(DecisionDraft(DecisionKind.EXTERNAL, "What now?")),)
        return None, (fork(),)

    ended = bench.run(Hands(does, makes_plans=True), task(budget=Limits(loops=12)))
    assert ended.stop.axis is Axis.DEFER
    assert "gate: broke" in seen[0]
    assert [event.winner for event in bench.of("fork_resolved")] == [None]


def test_of_those_that_hold_the_one_with_fewer_red_tests_wins(bench: Any, task: MakeTask) -> None:
    class Counting(type(bench.gate)):  # type: ignore[misc]
        def judge(self, candidate: Any) -> Any:
            found = super().judge(candidate)
            red = tuple(f"t{n}" for n in range(len(candidate.tree)))
            return replace(found, checks=(replace(found.checks[0], findings=red),))

    bench.gate = Counting()
    still_red(bench)

    def does(request: StepRequest) -> Did:
        if plan := planned(request):
            return plan
        if request.option is not None:
            return {"regex": "bbbbbbb", "parser": "b"}[request.option.name], DONE
        if request.step_goal == "first":
            return None, (fork(),)
        return None, (Deferred(DecisionDraft(DecisionKind.EXTERNAL, "Enough?")),)

    bench.run(Hands(does, makes_plans=True), task())
    assert [event.winner for event in bench.of("fork_resolved")] == ["main.1.2-parser"]


def sequential(forks: int) -> Callable[[StepRequest], Did]:
    """Each of so many todos is a fork; what wins at one is where the next begins."""

    def does(request: StepRequest) -> Did:
        if request.is_planning:
            return None, (PlanProposed(tuple(f"todo {n}" for n in range(forks))),)
        if request.option is None:
            return None, (fork(question=f"How is {request.step_goal} done?"),)
        return f"{request.step_goal} {request.option.name}", DONE

    return does


@pytest.mark.parametrize("beam_width", [1, 2, 3])
def test_sequential_forks_never_hold_more_worktrees_than_the_beam_is_wide(
    bench: Any, task: MakeTask, beam_width: int
) -> None:
    width(bench, beam_width)
    still_red(bench)
    bench.gate.passing = frozenset({"todo 5 regex"})
    ended = bench.run(Hands(sequential(6), makes_plans=True), task(budget=Limits(loops=100)))
    assert ended.stop.axis is Axis.GOAL
    assert bench.repository.most_open <= beam_width


def test_sequential_forks_cost_linearly(bench: Any, task: MakeTask) -> None:
    costs: list[tuple[int, int]] = []
    for count in (2, 4, 8):
        bench.sessions.records.clear()
        bench.gate.seen.clear()
        still_red(bench)
        bench.gate.passing = frozenset({f"todo {count - 1} regex"})
        hands = Hands(sequential(count), makes_plans=True)
        ended = bench.run(hands, task(budget=Limits(loops=300)))
        assert ended.stop.axis is Axis.GOAL
        costs.append((len(hands.requests) - 1, ended.plan.budget.loops_used))
    # A step that raises the fork, and one for each of the two options; the last loser tries on.
    assert [steps for steps, _ in costs[:1]] == [costs[0][1]]
    (two, _), (four, _), (eight, _) = costs
    assert eight - four == 2 * (four - two) == 4 * 3


def test_candidates_of_one_fork_run_side_by_side(bench: Any, task: MakeTask) -> None:
    together = threading.Barrier(2, timeout=30)
    bench.gate.passing = frozenset({"one", "two"})

    def does(request: StepRequest) -> Did:
        if request.option is None:
            return None, (fork(),)
        together.wait()
        return {"regex": "one", "parser": "two"}[request.option.name], DONE

    assert bench.run(Hands(does), task()).stop.axis is Axis.GOAL


def test_what_candidates_spend_is_spent_of_their_tasks_budget(bench: Any, task: MakeTask) -> None:
    hands = Hands(lambda request: (None, (fork(),)) if request.option is None else ("x", RED))
    ended = bench.run(hands, task(budget=Limits(loops=7)))
    trials = [request for request in hands.requests if request.option is not None]
    assert {request.budget.loops_max for request in trials} == {2}
    assert ended.plan.budget.loops_used == len(hands.requests) <= 7


def test_evidence_of_a_fork_without_winner_goes_back_to_the_plan_once(
    bench: Any, task: MakeTask
) -> None:
    forks: list[str] = []

    def does(request: StepRequest) -> Did:
        if request.option is None:
            forks.append(request.observation)
            return None, (fork(question=f"Question {len(forks)}?"),)
        return f"bad {request.option.name}", (*RED, TodoDone())

    ended = bench.run(Hands(does), task(budget=Limits(loops=60)))
    assert ended.stop == StopReason(Axis.STALL, "fork_failed")
    assert len(forks) == 2
    assert "none passed the gate" in forks[1]
    assert "regex: stall: unchanged_tree" in forks[1]
    assert "gate: verify is red" in forks[1]


def test_a_fork_inside_a_trial_is_not_tried_in_its_turn(bench: Any, task: MakeTask) -> None:
    bench.gate.passing = frozenset({"one", "two"})

    def does(request: StepRequest) -> Did:
        if request.option is None:
            return None, (fork(),)
        if not request.settled:
            return None, (fork("fast", "slow", question="Which order?", best_guess="slow"),)
        return {"regex": "one", "parser": "two"}[request.option.name], DONE

    hands = Hands(does)
    ended = bench.run(hands, task())
    assert ended.stop.axis is Axis.GOAL
    assert {request.candidate for request in hands.requests} == {
        "main",
        "main.1.1-regex",
        "main.1.2-parser",
    }
    assert {request.settled[-1].option for request in hands.requests if request.settled} == {"slow"}


def test_no_more_options_than_the_beam_is_wide_are_tried_the_guess_first(
    bench: Any, task: MakeTask
) -> None:
    bench.gate.passing = frozenset({"c"})

    def does(request: StepRequest) -> Did:
        if request.option is None:
            if "Not tried: b." in request.observation:
                return None, (Deferred(DecisionDraft(DecisionKind.EXTERNAL, "What now?")),)
            return None, (fork("a", "b", "c", best_guess="C"),)
        return "red", (*RED, TodoDone())

    hands = Hands(does)
    assert bench.run(hands, task(budget=Limits(loops=40))).stop.axis is Axis.DEFER
    tried = dict.fromkeys(request.option.name for request in hands.requests if request.option)
    assert set(tried) == {"c", "a"}


def test_a_budget_without_a_step_for_each_option_has_the_guess_taken(
    bench: Any, task: MakeTask
) -> None:
    bench.gate.passing = frozenset({"good"})

    def does(request: StepRequest) -> Did:
        return ("good", DONE) if request.settled else (None, (fork(best_guess="parser"),))

    hands = Hands(does)
    ended = bench.run(hands, task(budget=Limits(loops=2)))
    assert ended.stop.axis is Axis.GOAL
    assert hands.requests[-1].settled[-1].option == "parser"


def test_what_a_candidate_asks_waits_for_its_answer_while_the_others_end_stands(
    bench: Any, task: MakeTask
) -> None:
    bench.gate.passing = frozenset({"good"})

    def does(request: StepRequest) -> Did:
        if request.option is None:
            return None, (fork(),)
        if request.option.name == "regex":
            return "bad", RED
        if request.answer is None:
            return None, (Deferred(DecisionDraft(DecisionKind.EXTERNAL, "Which one?")),)
        return "good", DONE

    hands = Hands(does)
    one = task(budget=Limits(loops=10))
    ended = bench.run(hands, one)
    assert ended.stop == StopReason(Axis.DEFER, DecisionKind.EXTERNAL)
    (question,) = [draft.question for draft in ended.drafts]
    assert question == "(option main.1.2-parser) Which one?"
    steps = len(hands.of("regex"))
    answer = Decision("T1.1", "T1", "r1", DecisionKind.EXTERNAL, question, answer="that")
    ended = bench.run(hands, one, Start(Sha("c1"), answers=(answer,)))
    assert (ended.stop.axis, ended.tree) == (Axis.GOAL, "good")
    assert hands.requests[-1].answer == "that"
    assert len(hands.of("regex")) == steps
    assert len(hands.of("main")) == 1


def test_a_candidate_that_ended_before_a_crash_is_neither_worked_on_nor_judged_again(
    bench: Any, task: MakeTask
) -> None:
    width(bench, 1)
    bench.gate.passing = frozenset({"small", "a larger one"})
    is_killed = True

    def does(request: StepRequest) -> Did:
        if request.option is None:
            return "half", (fork(),)
        if request.option.name == "regex":
            return "small", DONE
        if is_killed:
            raise CancelledError("killed")
        return "a larger one", DONE

    hands = Hands(does)
    with pytest.raises(CancelledError):
        bench.run(hands, task())
    assert [one.tree for one in bench.gate.seen] == ["small"]
    is_killed = False
    ended = bench.run(hands, task())
    assert (ended.stop.axis, ended.tree) == (Axis.GOAL, "small")
    assert ended.gate is not None
    assert ended.gate.is_passed
    assert [one.tree for one in bench.gate.seen] == ["small", "a larger one"]
    assert len(hands.of("main")) == 1
    assert len(hands.of("regex")) == 1


def test_a_result_that_a_fork_has_made_whole_is_not_judged_again_after_a_crash(
    bench: Any, task: MakeTask
) -> None:
    bench.gate.passing = frozenset({"one"})
    hands = Hands(forking(regex="one", parser="two"))
    first = bench.run(hands, task(budget=Limits(loops=5)))
    judged, steps = len(bench.gate.seen), len(hands.requests)
    again = bench.run(hands, task(budget=Limits(loops=5)))
    assert (again.stop, again.tree, again.gate) == (first.stop, first.tree, first.gate)
    assert (len(bench.gate.seen), len(hands.requests)) == (judged, steps)


def test_candidates_begin_with_what_their_plan_has_been_through(bench: Any, task: MakeTask) -> None:
    bench.gate.passing = frozenset({"one"})
    hands = Hands(forking(regex="one", parser="two"))
    bench.run(hands, task(budget=Limits(loops=5)))
    (first, *_) = hands.of("regex")
    assert first.loop_iteration == 2
    assert "you try one option: regex" in first.observation


def test_an_option_of_the_task_stays_the_way_of_the_candidates_that_it_forks_into(
    bench: Any, task: MakeTask
) -> None:
    bench.gate.passing = frozenset({"one", "two"})
    width(bench, 2)
    two = (Option("a", "in this way", "make a"), Option("b", "in that way", "make b"))

    def does(request: StepRequest) -> Did:
        if request.candidate in {"a", "b"}:
            return None, (fork(),)
        return "one", DONE

    hands = Hands(does)
    ended = bench.run(hands, task(options=two))
    assert ended.stop.axis is Axis.GOAL
    (first, *_) = hands.of("a.1.1-regex")
    assert first.option == Option("regex", "in this way\nby regex", "make a")
    assert bench.repository.most_open <= 2


def test_a_fork_that_the_planning_raises_is_left_to_its_todo(bench: Any, task: MakeTask) -> None:
    bench.gate.passing = frozenset({"one"})

    def does(request: StepRequest) -> Did:
        if request.is_planning and "No plan is made by trial" not in request.observation:
            return None, (fork(),)
        if request.is_planning:
            return None, (PlanProposed(("it",)),)
        return "one", DONE

    hands = Hands(does, makes_plans=True)
    assert bench.run(hands, task()).stop.axis is Axis.GOAL
    assert {request.candidate for request in hands.requests} == {"main"}


def test_a_plan_that_is_at_a_fork_survives_its_checkpoint(bench: Any, task: MakeTask) -> None:
    bench.gate.passing = frozenset({"one"})
    bench.run(Hands(forking(regex="one", parser="two")), task(budget=Limits(loops=5)))
    for _, _, checkpoint in bench.sessions.saved:
        assert decode(encode(checkpoint)) == checkpoint
    plans: list[Plan] = [checkpoint.plan for _, _, checkpoint in bench.sessions.saved]
    assert any(plan.forks.tried is not None for plan in plans)
