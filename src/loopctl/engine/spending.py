"""What a candidate has spent, kept in its plan: pure."""

from dataclasses import replace

from loopctl.domain import Usage
from loopctl.plan import Plan


def spent(plan: Plan, usage: Usage | None = None, *, ms: int = 0, loops: int = 0) -> Plan:
    """Return the plan with that much more spent: model usage, milliseconds, whole steps."""
    budget, more = plan.budget, usage or Usage()
    budget = replace(
        budget,
        loops_used=budget.loops_used + loops,
        wall_ms=budget.wall_ms + ms,
        tokens_used=budget.tokens_used + more.prompt_tokens + more.completion_tokens,
        usd_used=budget.usd_used + more.usd,
    )
    return replace(plan, budget=budget)
