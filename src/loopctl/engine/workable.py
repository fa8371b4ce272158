"""Whether this version can work on a task at all: pure, and light enough for ``loop next``."""

from collections.abc import Mapping

from loopctl.domain import Task


def why_unworkable(task: Task, default_worker: str, hindrances: Mapping[str, str]) -> str | None:
    """Return why nobody can work on a task, without its id; ``None`` where somebody can.

    Args:
        task: Which.
        default_worker: Of a task that names none: the setting ``loop.worker``.
        hindrances: For each worker that this version has why it cannot work now, or nothing.
    """
    worker = task.worker or default_worker
    if worker in hindrances:
        return f"needs the worker {worker}: {hindrances[worker]}" if hindrances[worker] else None
    return (
        f"needs the worker {worker}, which this version does not have; give it a command and "
        'worker = "command"'
    )
