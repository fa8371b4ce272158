"""Says stop: pure, and evaluated by the engine alone, in the order budget, stall, goal.

Source: the loop's low-level design §5.2.
"""

from typing import Final

from loopctl.domain import Axis, StopReason
from loopctl.engine.progress import StallLimits, stall_reason
from loopctl.moneyports import Cap
from loopctl.plan import Budget, Plan, PlanStatus

LOOPS: Final = "loops"
TOKENS: Final = "tokens"
WALL: Final = "wall"
USD: Final = "usd"
UNKNOWN_PRICE: Final = "unknown_price"
"""A model whose price nobody knows was to be called under a cap in dollars."""
GOAL_MET: Final = "goal_met"

_STATUS: Final = {
    Axis.GOAL: PlanStatus.COMPLETE,
    Axis.STALL: PlanStatus.STALLED,
    Axis.BUDGET: PlanStatus.BUDGET_EXHAUSTED,
}
_OF_TASK: Final = {Cap.TASK_TOKENS: TOKENS, Cap.TASK_USD: USD}
_OF_RUN: Final = frozenset(cap.value for cap in Cap if cap.is_of_run)


def stop_reason(plan: Plan, limits: StallLimits, *, gate_passed: bool) -> StopReason | None:
    """Return why no further step of ``plan`` is issued; ``None`` to go on.

    A goal met on the last step that the budget allows is met: the budget only stops the next
    step. An empty plan never counts as met, however the gate sees it.
    """
    is_met = gate_passed and plan.is_goal_met
    spent = spent_cap(plan.budget)
    if spent is not None and not is_met:
        return StopReason(Axis.BUDGET, spent)
    stuck = stall_reason(plan, limits)
    if stuck is not None:
        return StopReason(Axis.STALL, stuck)
    return StopReason(Axis.GOAL, GOAL_MET) if is_met else None


def status_at(stop: StopReason) -> PlanStatus:
    """Return how a plan stands whose work ends for now."""
    return _STATUS.get(stop.axis, PlanStatus.ACTIVE)


def spent_cap(budget: Budget) -> str | None:
    """Return the name of the first cap that leaves nothing for another step."""
    for name, used, cap in (
        (LOOPS, budget.loops_used, budget.loops_max),
        (TOKENS, budget.tokens_used, budget.tokens_max),
        (WALL, budget.wall_ms, budget.wall_max_ms),
        (USD, budget.usd_used, budget.usd_max),
    ):
        if cap is not None and used >= cap:
            return name
    return None


def refused_stop(cap: Cap | None) -> StopReason:
    """Return why the work ends after a model call that did not fit under a cap.

    Another step would ask for as much and be refused as well.
    """
    if cap is None:
        return StopReason(Axis.BUDGET, UNKNOWN_PRICE)
    return StopReason(Axis.BUDGET, _OF_TASK.get(cap, cap.value))


def is_of_run(stop: StopReason) -> bool:
    """Say whether the run's own budget is spent: its tasks stay to be done."""
    return stop.axis is Axis.BUDGET and stop.reason in _OF_RUN
