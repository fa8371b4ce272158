"""Finds out for each task whether its verify command can turn red: the work of ``doctor --gate``."""

from collections.abc import Iterator, Sequence

from loopctl.assembly import open_repository
from loopctl.domain import Task, TaskId
from loopctl.errors import UsageError
from loopctl.judges.sensitivity import Finding, Probe, Sensitivity
from loopctl.place import Place


def probed(place: Place, ids: Sequence[str] = ()) -> Iterator[tuple[Task, Sensitivity]]:
    """Yield the tasks of the manifest, in its order, with what became of faults in their work.

    They are planted at the head of the integration branch, or at HEAD where there is none.

    Args:
        place: Where.
        ids: Of the tasks; all where there are none.

    Raises:
        UserError: There is no manifest, no such task, or no commit.
        MachineError: git is missing, or confinement is required and there is none.
    """
    tasks = place.file.load().tasks
    if missing := sorted(set(ids) - {task.id for task in tasks}):
        raise UsageError(f"{missing[0]}: {place.file.path} has no such task")
    settings = place.settings
    repository = open_repository(place, settings)
    repository.sync()
    head = repository.integration() or repository.head()
    probe = Probe(repository, settings.gate, head, settings.sandbox.setup_cmd)
    landed = repository.landings()
    for task in tasks:
        if ids and task.id not in ids:
            continue
        if not (task.verify_cmd or "").strip():
            yield task, Sensitivity(Finding.NONE, reason="has no verify_cmd")
            continue
        own = [entry.commit for entry in landed if entry.task == TaskId(task.id)]
        yield task, probe.examine(task.verify_cmd or "", own)
