"""Says stop: pure, and evaluated by the engine alone, in the order budget, stall, goal.

Source: the loop's low-level design §5.2.
"""

from typing import Final

from loopctl.domain import Axis, StopReason
from loopctl.engine.progress import StallLimits, stall_reason
from loopctl.plan import Budget, Plan

LOOPS: Final = "loops"
TOKENS: Final = "tokens"
WALL: Final = "wall"
USD: Final = "usd"
GOAL_MET: Final = "goal_met"


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
