"""Which decisions still stand: pure, and light enough for ``loop status``."""

from collections.abc import Iterable, Sequence
from typing import Final

from loopctl.domain import GOAL, Decision, Manifest, TaskStatus

ASKING: Final = frozenset({TaskStatus.NEEDS_HUMAN, TaskStatus.BLOCKED})
"""Statuses of tasks that wait for an answer."""


def open_decisions(decisions: Sequence[Decision], manifest: Manifest) -> tuple[Decision, ...]:
    """Return the decisions that still stand: unanswered, and their task still waits for them.

    A question about the goal stands as long as no newer run has asked or settled it.
    """
    asking = {task.id for task in manifest.tasks if task.status in ASKING}
    newest = newest_runs(decisions)
    return tuple(
        decision
        for decision in decisions
        if decision.answer is None
        and (decision.task in asking or decision.task == GOAL)
        and decision.run_id == newest[decision.task]
    )


def newest_runs(decisions: Iterable[Decision]) -> dict[str, str]:
    """Return for each task the run that was the last to ask about it.

    What an earlier one has asked is overtaken: the task was begun anew since.
    """
    return {decision.task: decision.run_id for decision in decisions}
