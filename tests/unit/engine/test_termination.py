from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from loopctl.domain import Axis, StopReason
from loopctl.engine.progress import StallLimits, observe, stall_reason
from loopctl.engine.terminator import spent_cap, stop_reason
from loopctl.plan import Budget, Plan, StepProgress, Todo, TodoStatus, single_todo

LIMITS = StallLimits(window=3, replan_cap=4, stuck_steps=6)


def plan(**budget: int) -> Plan:
    return single_todo("goal", "todo", Budget(**budget))


def done(one: Plan) -> Plan:
    return one.with_todo(0, status=TodoStatus.DONE)


def after(one: Plan, *steps: StepProgress) -> Plan:
    for step in steps:
        one = observe(one, step, LIMITS)
    return one


SAME = StepProgress(response_delta_hash="a")
NEW_WORDS = [StepProgress(response_delta_hash=f"w{n}") for n in range(9)]


def test_three_flat_steps_with_the_same_answer_are_no_progress() -> None:
    assert stall_reason(after(plan(), SAME, SAME), LIMITS) is None
    assert stall_reason(after(plan(), SAME, SAME, SAME), LIMITS) == "no_progress"


@pytest.mark.parametrize(
    "good",
    [
        StepProgress(response_delta_hash="a", produced_new_artifacts=True),
        StepProgress(response_delta_hash="a", todo_completed=True),
        StepProgress(response_delta_hash="b"),
    ],
    ids=["new artifact", "closed todo", "new answer"],
)
def test_one_sign_of_progress_in_the_window_is_no_stall(good: StepProgress) -> None:
    assert stall_reason(after(plan(), SAME, good, SAME), LIMITS) is None


def test_new_words_at_every_step_are_caught_by_the_replan_cap() -> None:
    thrashing = replace(after(plan(), *NEW_WORDS[:5]), replans=4)
    assert stall_reason(thrashing, LIMITS) is None
    assert stall_reason(replace(thrashing, replans=5), LIMITS) == "replan_cap"


def test_no_progress_is_named_before_the_replan_cap() -> None:
    stuck = replace(after(plan(), SAME, SAME, SAME), replans=5)
    assert stall_reason(stuck, LIMITS) == "no_progress"


def streak(**signal: str) -> list[StepProgress]:
    return [StepProgress(response_delta_hash=f"w{n}", **signal) for n in range(6)]  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("signal", "reason"),
    [
        ({"tree": "t"}, "unchanged_tree"),
        ({"gate_signature": "e"}, "same_type_error"),
        ({"tool_calls_hash": "c"}, "same_tool_calls"),
    ],
)
def test_a_signal_that_stays_for_six_steps_is_a_stall(signal: dict[str, str], reason: str) -> None:
    steps = streak(**signal)
    assert stall_reason(after(plan(), *steps[:5]), LIMITS) is None
    assert stall_reason(after(plan(), *steps), LIMITS) == reason


def test_empty_sequences_of_calls_never_count_as_the_same() -> None:
    assert stall_reason(after(plan(), *streak(tool_calls_hash="")), LIMITS) is None


def test_steps_without_a_gate_run_do_not_interrupt_consecutive_gate_runs() -> None:
    gated = streak(gate_signature="e")
    mixed = [step for pair in zip(gated, NEW_WORDS[:6], strict=True) for step in pair]
    assert stall_reason(after(plan(), *mixed[:-1]), LIMITS) == "same_type_error"


@given(st.lists(st.builds(StepProgress, response_delta_hash=st.text(max_size=2)), max_size=12))
def test_the_ring_is_never_longer_than_the_window(steps: list[StepProgress]) -> None:
    assert len(after(plan(), *steps).progress) == min(len(steps), LIMITS.window)


@pytest.mark.parametrize(
    ("budget", "cap"),
    [
        (Budget(loops_used=3, loops_max=3), "loops"),
        (Budget(loops_used=2, loops_max=3), None),
        (Budget(loops_max=0), "loops"),
        (Budget(tokens_used=10, tokens_max=10), "tokens"),
        (Budget(wall_ms=1000, wall_max_ms=1000), "wall"),
        (Budget(usd_used=1.0, usd_max=1.0), "usd"),
        (Budget(usd_max=0.0), "usd"),
        (Budget(loops_used=999, tokens_used=999, wall_ms=999), None),
    ],
)
def test_a_cap_of_zero_allows_nothing_and_no_cap_allows_all(
    budget: Budget, cap: str | None
) -> None:
    assert spent_cap(budget) == cap


def test_budget_comes_before_stall() -> None:
    spent = after(plan(loops_used=3, loops_max=3), SAME, SAME, SAME)
    assert stop_reason(spent, LIMITS, gate_passed=False) == StopReason(Axis.BUDGET, "loops")


def test_a_goal_met_on_the_last_allowed_step_is_met() -> None:
    last = done(plan(loops_used=3, loops_max=3))
    assert stop_reason(last, LIMITS, gate_passed=True) == StopReason(Axis.GOAL, "goal_met")


def test_a_goal_without_a_gate_pass_is_not_met() -> None:
    assert stop_reason(done(plan()), LIMITS, gate_passed=False) is None


def test_an_empty_plan_is_not_met_even_when_the_gate_passes() -> None:
    assert stop_reason(Plan(goal="g"), LIMITS, gate_passed=True) is None


def test_a_plan_of_abandoned_todos_is_not_met() -> None:
    todo = Todo(id="1", text="t", status=TodoStatus.ABANDONED)
    assert stop_reason(Plan(goal="g", todos=(todo,)), LIMITS, gate_passed=True) is None
