"""How a run ended, from what is left: pure. The first that applies, in the contract's order."""

from collections.abc import Iterable, Mapping
from typing import Final

from loopctl.domain import EXIT_CODES, RunStatus, TaskId, TaskStatus

_SETTLED: Final = frozenset({TaskStatus.DONE, TaskStatus.ABANDONED, TaskStatus.BACKLOG})
_DONE: Final = frozenset({TaskStatus.DONE})
_LEFT: Final = _SETTLED | {TaskStatus.TODO}

USAGE_EXIT: Final = 2
"""Ended with a task that no configured worker can do."""


def outcome(
    statuses: Mapping[TaskId, TaskStatus],
    *,
    is_whole: bool = True,
    is_interrupted: bool = False,
    is_failed: bool = False,
    is_unworkable: bool = False,
    is_over_budget: bool = False,
    is_goal_unmet: bool = False,
    is_goal_met: bool = False,
    open_decisions: Iterable[str] = (),
) -> tuple[RunStatus, int]:
    """Return the status of the run and the exit code.

    Args:
        statuses: Of every task in scope.
        is_whole: Tasks that nobody has asked for yet (``backlog``) do not count; a task that
            was named counts whatever its status.
        is_interrupted: The user asked it to stop.
        is_failed: A fault of the harness itself was met.
        is_unworkable: A task in scope needs a worker that is not configured.
        is_over_budget: The run's own budget is spent.
        is_goal_unmet: The goal was judged, and is known not to be met.
        is_goal_met: Its criteria are met, and so what nobody has begun is left as it is.
        open_decisions: Ids of what a human must decide.
    """
    settled = _SETTLED if is_whole else _DONE
    if is_goal_met:
        settled = _LEFT
    if is_interrupted:
        status = RunStatus.INTERRUPTED
    elif is_failed:
        status = RunStatus.FAILED
    elif is_unworkable:
        return RunStatus.STALLED, USAGE_EXIT
    elif is_over_budget:
        status = RunStatus.BUDGET_EXHAUSTED
    elif any(True for _ in open_decisions):
        status = RunStatus.NEEDS_HUMAN
    elif is_goal_unmet or not settled.issuperset(statuses.values()):
        status = RunStatus.STALLED
    else:
        status = RunStatus.COMPLETE
    return status, EXIT_CODES[status]
