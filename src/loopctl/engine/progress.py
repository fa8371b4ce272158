"""What a step's signals say about progress: pure.

Source: the loop's low-level design §5.3 (window 3, cap 4) and the status model's three signals
from artifacts; identical output alone is not enough, since a thrashing worker says something new
at every step, so the replan cap stands beside the window.
"""

from dataclasses import dataclass, replace
from typing import Final

from loopctl.plan import Plan, Repeats, StepProgress

NO_PROGRESS: Final = "no_progress"
REPLAN_CAP: Final = "replan_cap"
UNCHANGED_TREE: Final = "unchanged_tree"
SAME_TYPE_ERROR: Final = "same_type_error"
SAME_TOOL_CALLS: Final = "same_tool_calls"
FORK_FAILED: Final = "fork_failed"
"""A second fork in whose trial no option has passed."""

WORKER_STUCK: Final = "worker_stuck"
"""The same call again and again inside one step; the worker was stopped in it."""

_FRUITLESS: Final = 2
"""Forks without a passing option that end a plan: the evidence of one goes back to it."""


@dataclass(frozen=True, slots=True)
class StallLimits:
    """When a plan counts as stuck.

    Attributes:
        window: Steps without artifact, closed todo or new answer.
        replan_cap: Accepted re-plans; one more is a stall.
        stuck_steps: Steps with the same tree, type errors or tool calls.
    """

    window: int = 3
    replan_cap: int = 4
    stuck_steps: int = 6


def observe(plan: Plan, step: StepProgress, limits: StallLimits) -> Plan:
    """Return the plan with one more step in its ring, which never exceeds the window."""
    before = plan.progress[-1] if plan.progress else None
    repeats = Repeats(
        tree=_streak(plan.repeats.tree, step.tree, before.tree if before else ""),
        tool_calls=_streak(
            plan.repeats.tool_calls, step.tool_calls_hash, before.tool_calls_hash if before else ""
        ),
        type_error=plan.repeats.type_error
        if not step.gate_signature
        else _streak(plan.repeats.type_error, step.gate_signature, plan.repeats.type_errors),
        type_errors=step.gate_signature or plan.repeats.type_errors,
    )
    ring = (*plan.progress, step)[-limits.window :]
    return replace(plan, progress=ring, repeats=repeats)


def stall_reason(plan: Plan, limits: StallLimits) -> str | None:
    """Return why the plan is stuck, the first that applies; ``None`` while it is not."""
    if _is_flat(plan.progress, limits.window):
        return NO_PROGRESS
    if plan.replans > limits.replan_cap:
        return REPLAN_CAP
    if plan.repeats.tree >= limits.stuck_steps:
        return UNCHANGED_TREE
    if plan.repeats.type_error >= limits.stuck_steps:
        return SAME_TYPE_ERROR
    if plan.repeats.tool_calls >= limits.stuck_steps:
        return SAME_TOOL_CALLS
    if plan.forks.fruitless >= _FRUITLESS:
        return FORK_FAILED
    return None


def _is_flat(ring: tuple[StepProgress, ...], window: int) -> bool:
    if len(ring) < window:
        return False
    answers = {step.response_delta_hash for step in ring}
    return len(answers) == 1 and not any(
        step.produced_new_artifacts or step.todo_completed for step in ring
    )


def _streak(length: int, now: str, before: str) -> int:
    """Return how many steps in a row have the value ``now``; an empty value never counts."""
    if not now:
        return 0
    return length + 1 if now == before else 1
