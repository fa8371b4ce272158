"""What a run would do if everything went well: for ``--dry-run`` and ``loop next``. Pure."""

from collections.abc import Callable

from loopctl.domain import Manifest, PolicyClass, Prospect, Scope, Task, TaskStatus, Wait
from loopctl.manifest.frontier import Frontier


def reversible(_task: Task) -> PolicyClass:
    """Return the class of a task whose effects stay in its sandbox."""
    return PolicyClass.REVERSIBLE


def workable(_task: Task) -> str | None:
    """Return no reason against any task."""
    return None


def prospects(
    manifest: Manifest,
    scope: Scope | None = None,
    *,
    default_worker: str = "graph",
    policy: Callable[[Task], PolicyClass] = reversible,
    unworkable: Callable[[Task], str | None] = workable,
) -> tuple[tuple[Prospect, ...], tuple[Wait, ...]]:
    """Return the tasks that would run, in order, and what each other task in scope waits for.

    Every task that can be worked on is taken to succeed, one after the other. A task that was
    named and is done already is among those that would not run.

    Args:
        manifest: As loaded.
        scope: What is asked for.
        default_worker: Of a task that names none: the setting ``loop.worker``.
        policy: Tells how far a task's effects can be undone.
        unworkable: Tells why nobody can work on a task; ``None`` where somebody can.

    Raises:
        UsageError: The scope names an id or a tag that the manifest does not have.
    """
    frontier = Frontier(manifest, scope)
    before = {task.id: frontier.unmet(task.id) for task in frontier.tasks()}
    named = scope.ids if scope is not None else ()
    reasons = {task: "done already" for task in named if frontier.status(task) is TaskStatus.DONE}
    found: list[Prospect] = []
    while task := frontier.next():
        if reason := unworkable(task):
            reasons[task.id] = reason
            frontier.mark(task.id, TaskStatus.BLOCKED)
            continue
        worker = task.worker or default_worker
        found.append(Prospect(task, worker, policy(task), before[task.id]))
        frontier.mark(task.id, TaskStatus.DONE)
    waits = {wait.task: wait.reason for wait in frontier.waits()} | reasons
    order = (task.id for task in frontier.tasks() if task.id in waits)
    return tuple(found), tuple(Wait(task, waits[task]) for task in order)
