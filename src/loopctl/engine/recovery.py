"""Before a run does anything: what git already holds, and what a dead process left behind."""

from collections.abc import Callable, Iterable
from typing import Literal

from loopctl.domain import TaskId, TaskStatus
from loopctl.engine.board import Board
from loopctl.engine.transitions import Signal
from loopctl.events import Noticed
from loopctl.records import Landed, Rescued


def reconcile(
    board: Board,
    landings: Callable[[], Iterable[Landed]],
    last_run: Callable[[TaskId], str | None],
) -> None:
    """Give every task that was left in progress the status that git proves.

    A dead process leaves such tasks, and so does a run that could not write to the manifest.

    Only such tasks are looked at: a task that a person has set back to ``todo`` after its
    landing is to be done again.

    Args:
        board: Of this run.
        landings: Reads the trailers of the integration branch.
        last_run: Tells which run was the last to work on a task: only what that one landed counts.
    """
    left = [
        task.id for task in board.manifest.tasks if board.status(task.id) is TaskStatus.IN_PROGRESS
    ]
    if not left:
        return
    landed = {(entry.task, entry.run_id) for entry in landings()}
    for task in left:
        has_landed = (task, last_run(task)) in landed
        board.signal(task, Signal.LANDED if has_landed else Signal.RELEASED)


def rescue_notice(rescued: Rescued, task: TaskId | None = None) -> Noticed | None:
    """Return what a person should know of the files of a step that was cut short, if anything."""
    words = []
    if rescued.ref:
        words.append(f"what a step that was cut short had made is kept as {rescued.ref}")
    if not rescued.is_complete:
        words.append(
            f"what a step that was cut short had made is left in {rescued.folder}: it could not be "
            f"saved ({rescued.why})"
        )
    if not words:
        return None
    level: Literal["info", "warning"] = "info" if rescued.is_complete else "warning"
    return Noticed(task=task, text="; ".join(words), level=level)
