"""The statuses of a run's tasks: moved by signals, written back to the manifest.

The manifest is the truth for people, so the board follows a user's edits during the run: a task
that is not being worked on has the status that the file gives it.
"""

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import Final

from loopctl.domain import Addition, Manifest, TaskId, TaskStatus
from loopctl.engine.transitions import Signal, advance
from loopctl.errors import ManifestError
from loopctl.events import Noticed, StatusChanged
from loopctl.ports import Emit, ManifestFile

Unwritten = Mapping[TaskId, tuple[TaskStatus, TaskStatus]]
"""Of each task the status that the file was read with last, and the one that it should have."""

_MOVED_OUT: Final = "it is no longer in the manifest"


@dataclass(frozen=True, slots=True)
class _Stamp:
    """By which a changed file is recognised without reading it."""

    inode: int
    mtime_ns: int
    size: int


class Board:
    """Owned by the driver's thread alone.

    Args:
        keep: Takes the statuses that the file could not take to the end, for a later run.
    """

    def __init__(
        self,
        file: ManifestFile,
        manifest: Manifest,
        emit: Emit,
        keep: Callable[[Unwritten], None] = lambda _unwritten: None,
    ) -> None:
        self._file = file
        self._emit = emit
        self._keep = keep
        self._manifest = manifest
        self._listed = {task.id for task in manifest.tasks}
        self._statuses = {task.id: task.status for task in manifest.tasks}
        self._held: dict[TaskId, TaskStatus] = {}
        self._written: dict[TaskId, TaskStatus] = {}
        self._refusals: dict[TaskId, str] = {}
        self._working: set[TaskId] = set()
        self._landed: set[TaskId] = set()
        self._stamp = self._look()

    @property
    def manifest(self) -> Manifest:
        """The manifest as last read."""
        return self._manifest

    def __contains__(self, task_id: object) -> bool:
        """Say whether the manifest, as last read, has the task."""
        return task_id in self._listed

    def status(self, task_id: TaskId) -> TaskStatus:
        """Return the task's present status."""
        return self._statuses[task_id]

    def statuses(self, task_ids: Iterable[TaskId]) -> dict[TaskId, TaskStatus]:
        """Return the present statuses of those tasks; ones that are gone are left out."""
        return {task: self._statuses[task] for task in task_ids if task in self._statuses}

    def signal(self, task_id: TaskId, signal: Signal) -> TaskStatus:
        """Move a task, announce it, and write its status to the manifest.

        Raises:
            InvalidTransitionError: Its status does not accept the signal; nothing was changed.
        """
        old = self._statuses[task_id]
        new = advance(old, signal)
        self._emit(StatusChanged(task=task_id, old=old, new=new, signal=signal))
        self._statuses[task_id] = new
        if signal is Signal.LANDED:
            self._landed.add(task_id)
        (self._working.add if signal is Signal.CLAIMED else self._working.discard)(task_id)
        self._held[task_id] = new
        self.flush()
        return new

    def flush(self) -> None:
        """Write the statuses that the file does not hold yet; what it cannot take is kept."""
        is_as_read = self._look() == self._stamp
        for task_id, status in list(self._held.items()):
            if self._file.write_status(task_id, status):
                del self._held[task_id]
                self._written[task_id] = status
            else:
                self._refusals[task_id] = self._file.refusal
        if is_as_read:
            self._stamp = self._look()

    def refresh(self) -> bool:
        """Read the manifest again if somebody has changed it; say whether it was.

        A file that does not parse at the moment is left for the next time.
        """
        if self._look() == self._stamp:
            return False
        try:
            manifest = self._file.load()
        except ManifestError:
            return False
        self._stamp = self._look()
        self._manifest = manifest
        self._written = {}
        self._listed = {task.id for task in manifest.tasks}
        # What landed has landed, also where the user's git has put an older manifest back.
        fallen = {
            task.id: TaskStatus.DONE
            for task in manifest.tasks
            if task.id in self._landed and task.status is not TaskStatus.DONE
        }
        self._held |= fallen
        ours = {task: self._statuses[task] for task in self._working} | self._held
        self._statuses = {task.id: task.status for task in manifest.tasks} | ours
        self._emit(Noticed(text=f"{self._file.path.name} was changed and read again", level="info"))
        self.flush()
        return True

    def extend(self, addition: Addition) -> None:
        """Add tasks to the manifest, and follow it.

        Raises:
            ManifestError: They cannot be added; nothing was written.
        """
        self.refresh()
        is_as_read = self._look() == self._stamp
        manifest = self._file.extend(addition)
        if not is_as_read:
            self.refresh()
            return
        self._stamp = self._look()
        self._manifest = manifest
        self._listed = {task.id for task in manifest.tasks}
        self._statuses = {task.id: task.status for task in manifest.tasks} | self._statuses

    def close(self) -> None:
        """Write what was held back; what still cannot be written is said."""
        self.flush()
        read = {task.id: task.status for task in self._manifest.tasks} | self._written
        left = {task: (read[task], status) for task, status in self._held.items() if task in read}
        if left:
            self._keep(left)
        for task_id, status in self._held.items():
            why = (
                f"{self._refusals[task_id]}; the next run writes it, where nobody has changed it"
                if task_id in self
                else _MOVED_OUT
            )
            self._emit(Noticed(task=task_id, text=f"status {status} was not written: {why}"))

    def _look(self) -> _Stamp | None:
        try:
            found = self._file.path.stat()
        except OSError:
            return None
        return _Stamp(found.st_ino, found.st_mtime_ns, found.st_size)
