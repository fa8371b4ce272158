"""What a run would do if everything went well: for ``--dry-run`` and ``loop next``. Pure."""

from collections.abc import Callable

from loopctl.domain import Manifest, PolicyClass, Prospect, Scope, Task, TaskStatus, Wait
from loopctl.manifest.frontier import Frontier


def reversible(_task: Task) -> PolicyClass:
    """Return the class of a task whose effects stay in its sandbox."""
    return PolicyClass.REVERSIBLE


def prospects(
    manifest: Manifest,
    scope: Scope | None = None,
    *,
    default_worker: str = "graph",
    policy: Callable[[Task], PolicyClass] = reversible,
) -> tuple[tuple[Prospect, ...], tuple[Wait, ...]]:
    """Return the tasks that would run, in order, and what each other task in scope waits for.

    Every task is taken to succeed, one after the other.

    Args:
        manifest: As loaded.
        scope: What is asked for.
        default_worker: Of a task that names none: the setting ``loop.worker``.
        policy: Tells how far a task's effects can be undone.

    Raises:
        UsageError: The scope names an id or a tag that the manifest does not have.
    """
    frontier = Frontier(manifest, scope)
    before = {task.id: frontier.unmet(task.id) for task in frontier.tasks()}
    found: list[Prospect] = []
    while task := frontier.next():
        worker = task.worker or default_worker
        found.append(Prospect(task, worker, policy(task), before[task.id]))
        frontier.mark(task.id, TaskStatus.DONE)
    return tuple(found), frontier.waits()
