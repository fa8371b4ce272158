from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from loopctl.domain import Axis, DecisionDraft, DecisionKind, Limits, Mode, StopReason, Task, Usage
from loopctl.engine import replan
from loopctl.plan import OPEN_TODOS, Plan, TodoStatus
from loopctl.steps import (
    Deferred,
    OutputTail,
    PlanProposed,
    StepEvent,
    TodoDone,
    UsageReported,
)
from loopctl.testing import ScriptedStep, ScriptedWorker

MakeTask = Callable[..., Task]
DONE: tuple[StepEvent, ...] = (OutputTail(0, "ok"), TodoDone("did it"))
names = st.lists(
    st.text(min_size=1, max_size=3).filter(str.strip), min_size=1, max_size=6, unique=True
)


def planner(*steps: ScriptedStep) -> ScriptedWorker:
    return ScriptedWorker(steps, makes_plans=True)


def plan(*todos: str) -> ScriptedStep:
    return ScriptedStep(events=(PlanProposed(todos),))


def test_task_is_planned_first_then_worked_on_todo_by_todo(bench: Any, task: MakeTask) -> None:
    bench.gate.passing = frozenset({"ab"})
    hands = planner(
        plan("first", "second"),
        ScriptedStep(tree="a", events=DONE),
        ScriptedStep(tree="ab", events=DONE),
    )
    ended = bench.run(hands, task())
    assert ended.is_passed
    goals = [(request.step_goal, request.is_planning) for request in hands.requests]
    assert goals[1:] == [("first", False), ("second", False)]
    assert goals[0][1]
    assert len(bench.gate.seen) == 1


def test_planning_step_is_no_loop_and_belongs_to_the_iteration_it_opens(
    bench: Any, task: MakeTask
) -> None:
    bench.gate.passing = frozenset({"a"})
    hands = planner(plan("only"), ScriptedStep(tree="a", events=DONE))
    ended = bench.run(hands, task(budget=Limits(loops=1)))
    assert ended.is_passed
    assert ended.plan.budget.loops_used == 1
    assert [request.loop_iteration for request in hands.requests] == [1, 1]
    assert [iteration for _, iteration, _ in bench.sessions.saved] == [1]


def test_what_planning_spends_counts_and_is_told_once(bench: Any, task: MakeTask) -> None:
    bench.gate.passing = frozenset({"a"})
    costs = UsageReported(Usage(100, 10, 0.5))
    hands = planner(
        ScriptedStep(events=(PlanProposed(("only",)), costs)),
        ScriptedStep(tree="a", events=(*DONE, costs)),
    )
    ended = bench.run(hands, task(worker="graph"))
    assert (ended.plan.budget.tokens_used, ended.plan.budget.usd_used) == (220, 1.0)
    assert ended.usage == Usage(200, 20, 1.0)
    assert bench.of("step_finished")[0].usage == Usage(200, 20, 1.0)


def test_budget_that_planning_uses_up_is_the_end(bench: Any, task: MakeTask) -> None:
    costs = UsageReported(Usage(100, 0, 0.0))
    hands = planner(ScriptedStep(events=(PlanProposed(("only",)), costs)))
    ended = bench.run(hands, task(worker="graph", budget=Limits(tokens=100)))
    assert (ended.stop, len(hands.requests)) == (StopReason(Axis.BUDGET, "tokens"), 1)


def test_planning_gives_up_after_two_tries_and_pursues_the_task_as_one_todo(
    bench: Any, task: MakeTask
) -> None:
    bench.gate.passing = frozenset({"a"})
    hands = planner(ScriptedStep(), plan(), ScriptedStep(tree="a", events=DONE))
    ended = bench.run(hands, task(prompt="do the thing"))
    assert ended.is_passed
    assert [request.is_planning for request in hands.requests] == [True, True, False]
    assert hands.requests[2].step_goal == "do the thing"


def test_planning_step_may_ask_a_human(bench: Any, task: MakeTask) -> None:
    draft = DecisionDraft(DecisionKind.SCOPE, "How far?")
    ended = bench.run(planner(ScriptedStep(events=(Deferred(draft),))), task())
    assert (ended.stop.axis, ended.drafts) == (Axis.DEFER, (draft,))
    assert ended.plan.todos == ()


def test_planned_task_that_was_cut_off_is_planned_again(bench: Any, task: MakeTask) -> None:
    draft = DecisionDraft(DecisionKind.SCOPE, "How far?")
    bench.run(planner(ScriptedStep(events=(Deferred(draft),))), task())
    bench.gate.passing = frozenset({"a"})
    hands = planner(plan("only"), ScriptedStep(tree="a", events=DONE))
    assert bench.run(hands, task()).is_passed
    assert [request.loop_iteration for request in hands.requests] == [2, 2]


def test_replan_inserts_and_abandons_and_counts_once(bench: Any, task: MakeTask) -> None:
    bench.gate.passing = frozenset({"abc"})
    hands = planner(
        plan("one", "two", "three"),
        ScriptedStep(tree="a", events=(*DONE, PlanProposed(("three", "four")))),
        ScriptedStep(tree="ab", events=DONE),
        ScriptedStep(tree="abc", events=DONE),
    )
    ended = bench.run(hands, task())
    assert ended.is_passed
    assert [request.step_goal for request in hands.requests[1:]] == ["one", "three", "four"]
    assert {todo.text: todo.status for todo in ended.plan.todos} == {
        "one": TodoStatus.DONE,
        "two": TodoStatus.ABANDONED,
        "three": TodoStatus.DONE,
        "four": TodoStatus.DONE,
    }
    assert ended.plan.replans == 1
    assert [event.replans for event in bench.of("plan_revised")] == [1]


def test_proposal_that_changes_nothing_is_no_replan(bench: Any, task: MakeTask) -> None:
    bench.gate.passing = frozenset({"a"})
    hands = planner(
        plan("one"),
        ScriptedStep(events=(OutputTail(1, "x"), PlanProposed(("one",))), answer="1"),
        ScriptedStep(tree="a", events=DONE),
    )
    assert bench.run(hands, task()).plan.replans == 0
    assert bench.of("plan_revised") == []


def test_replan_on_the_last_todo_keeps_the_gate_waiting(bench: Any, task: MakeTask) -> None:
    bench.gate.passing = frozenset({"ab"})
    hands = planner(
        plan("one"),
        ScriptedStep(tree="a", events=(*DONE, PlanProposed(("more",)))),
        ScriptedStep(tree="ab", events=DONE),
    )
    assert bench.run(hands, task()).is_passed
    assert len(bench.gate.seen) == 1


def test_thrashing_worker_stalls_on_the_replan_cap_after_five_steps(
    bench: Any, task: MakeTask
) -> None:
    thrash = [
        ScriptedStep(
            tree=f"t{n}",
            events=(OutputTail(1, f"new {n}"), PlanProposed((f"try {n}",))),
            answer=f"{n}",
        )
        for n in range(25)
    ]
    ended = bench.run(planner(plan("begin"), *thrash), task())
    assert ended.stop == StopReason(Axis.STALL, "replan_cap")
    assert (ended.plan.budget.loops_used, ended.plan.replans) == (5, 5)
    assert ended.plan.budget.loops_max == 25
    assert (ended.tree, ended.result) == ("t4", "new 4")
    assert ended.ref in bench.repository.refs


def test_relay_is_one_todo_without_planning_replans_or_sub_goal(bench: Any, task: MakeTask) -> None:
    bench.gate.passing = frozenset({"a"})
    hands = planner(
        ScriptedStep(events=(OutputTail(1, "x"), PlanProposed(("other",))), answer="1"),
        ScriptedStep(tree="a", events=DONE),
    )
    ended = bench.run(hands, task(mode=Mode.RELAY))
    assert ended.is_passed
    assert [(one.step_goal, one.is_planning) for one in hands.requests] == [("", False)] * 2
    assert (ended.plan.replans, len(ended.plan.todos)) == (0, 1)
    assert "relay makes no plans" in hands.requests[1].observation


def test_limits_differ_by_mode(bench: Any, task: MakeTask) -> None:
    stall = bench.settings.modes.relay.stall.model_copy(update={"window": 2})
    relay = bench.settings.modes.relay.model_copy(update={"stall": stall})
    modes = bench.settings.modes.model_copy(update={"relay": relay})
    bench.settings = bench.settings.model_copy(update={"modes": modes})
    red = ScriptedStep(events=(OutputTail(1, "red"),), answer="same")
    counts = {
        mode: bench.run(ScriptedWorker([red]), task(f"T{mode}", mode=mode)).plan.budget.loops_used
        for mode in Mode
    }
    assert counts == {Mode.AUTONOMOUS: 3, Mode.RELAY: 2}


def test_summaries_are_cut_so_that_checkpoints_do_not_grow(bench: Any, task: MakeTask) -> None:
    bench.gate.passing = frozenset({"a"})
    long = (OutputTail(0, "ok"), TodoDone("x" * 100_000))
    ended = bench.run(ScriptedWorker([ScriptedStep(tree="a", events=long)]), task())
    assert len(ended.plan.todos[0].summary) == 2000


@pytest.mark.parametrize(
    ("texts", "why"),
    [
        ((), "at least one todo"),
        (("a", " "), "none of them empty"),
        (("a", "a"), "once"),
        (tuple(f"{n}" for n in range(51)), "at most 50"),
        (("a", "b"), ""),
    ],
)
def test_what_is_no_plan_is_rejected_with_the_reason(texts: tuple[str, ...], why: str) -> None:
    assert why in replan.rejection(texts)
    assert bool(replan.rejection(texts)) is bool(why)


@given(names, st.lists(names, max_size=6), st.lists(st.integers(0, 5), max_size=6))
def test_any_replans_keep_what_is_closed_and_open_exactly_what_was_proposed(
    first: list[str], proposals: list[list[str]], closes: list[int]
) -> None:
    now = replan.planned(Plan(goal="g"), tuple(first))
    for number, texts in enumerate(proposals):
        if number < len(closes) and now.active is not None:
            now = now.with_todo(now.cursor, status=TodoStatus.DONE)
        closed = [todo for todo in now.todos if todo.status not in OPEN_TODOS]
        after = replan.revised(now, tuple(texts))
        assert after.replans == now.replans + (after is not now)
        assert [todo.text for todo in after.todos if todo.status in OPEN_TODOS] == texts
        assert [todo for todo in after.todos if todo in closed] == closed
        assert len({todo.id for todo in after.todos}) == len(after.todos)
        active = [todo for todo in after.todos if todo.status is TodoStatus.ACTIVE]
        assert active == [after.active]
        now = replace(after)
