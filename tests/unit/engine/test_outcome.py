import pytest

from loopctl.domain import RunStatus, TaskId, TaskStatus
from loopctl.engine.outcome import outcome


def of(*statuses: TaskStatus) -> dict[TaskId, TaskStatus]:
    return {TaskId(str(n)): status for n, status in enumerate(statuses)}


ALL = {
    "is_interrupted": True,
    "is_failed": True,
    "is_unworkable": True,
    "is_over_budget": True,
    "open_decisions": ["x"],
}


@pytest.mark.parametrize(
    ("left_out", "expected"),
    [
        (0, (RunStatus.INTERRUPTED, 130)),
        (1, (RunStatus.FAILED, 1)),
        (2, (RunStatus.STALLED, 2)),
        (3, (RunStatus.BUDGET_EXHAUSTED, 5)),
        (4, (RunStatus.NEEDS_HUMAN, 3)),
        (5, (RunStatus.STALLED, 4)),
    ],
)
def test_the_first_that_applies_counts(left_out: int, expected: tuple[RunStatus, int]) -> None:
    flags = dict(list(ALL.items())[left_out:])
    assert outcome(of(TaskStatus.STUCK), **flags) == expected  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("status", "whole", "named"),
    [
        (TaskStatus.DONE, 0, 0),
        (TaskStatus.ABANDONED, 0, 4),
        (TaskStatus.BACKLOG, 0, 4),
        (TaskStatus.TODO, 4, 4),
        (TaskStatus.STUCK, 4, 4),
        (TaskStatus.BLOCKED, 4, 4),
    ],
)
def test_what_nobody_asked_for_does_not_count_and_what_was_named_does(
    status: TaskStatus, whole: int, named: int
) -> None:
    assert outcome(of(TaskStatus.DONE, status))[1] == whole
    assert outcome(of(TaskStatus.DONE, status), is_whole=False)[1] == named


def test_nothing_to_do_is_complete_and_an_unmet_goal_is_not() -> None:
    assert outcome({}) == (RunStatus.COMPLETE, 0)
    assert outcome({}, is_goal_unmet=True) == (RunStatus.STALLED, 4)
