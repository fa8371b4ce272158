"""Which decisions still stand: pure, and light enough for ``loop status``."""

from collections.abc import Sequence
from typing import Final

from loopctl.domain import GOAL, Decision, Manifest, TaskStatus

ASKING: Final = frozenset({TaskStatus.NEEDS_HUMAN, TaskStatus.BLOCKED})
"""Statuses of tasks that wait for an answer."""


def open_decisions(decisions: Sequence[Decision], manifest: Manifest) -> tuple[Decision, ...]:
    """Return the decisions that still stand: unanswered, and their task still waits for them.

    A question about the goal stands as long as no newer run has asked or settled it.
    """
    asking = {task.id for task in manifest.tasks if task.status in ASKING}
    newest_goal_run = next((d.run_id for d in reversed(decisions) if d.task == GOAL), None)
    return tuple(
        decision
        for decision in decisions
        if decision.answer is None
        and (
            decision.task in asking
            or (decision.task == GOAL and decision.run_id == newest_goal_run)
        )
    )
