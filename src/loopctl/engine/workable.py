"""Whether this version can work on a task at all: pure, and light enough for ``loop next``."""

from collections.abc import Collection

from loopctl.domain import Task


def why_unworkable(task: Task, default_worker: str, workers: Collection[str]) -> str | None:
    """Return why nobody can work on a task, without its id; ``None`` where somebody can.

    Args:
        task: Which.
        default_worker: Of a task that names none: the setting ``loop.worker``.
        workers: The names of those that this version has.
    """
    worker = task.worker or default_worker
    if worker in workers:
        return None
    return (
        f"needs the worker {worker}, which this version does not have; give it a command and "
        'worker = "command"'
    )
