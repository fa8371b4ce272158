"""``unwritten.json`` below ``.local``: statuses that the manifest could not take.

A user who is editing the manifest may leave it broken to the end of a run. What the run knew of
its tasks is kept here, and written once the file can be read again; unless the task's status has
been changed there meanwhile, which is a person's word.
"""

import contextlib
import json
import os
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Final

from loopctl.domain import Manifest, TaskId, TaskStatus
from loopctl.errors import LoopctlError
from loopctl.ports import ManifestFile

FILE_NAME: Final = "unwritten.json"

Unwritten = Mapping[TaskId, tuple[TaskStatus, TaskStatus]]
"""Of each task the status that the file had last, and the one that it should have."""


class UnwrittenFile:
    """The statuses of one checkout, kept from run to run.

    Args:
        local: ``.local``.
    """

    def __init__(self, local: Path) -> None:
        self._path = local / FILE_NAME

    def keep(self, statuses: Unwritten) -> None:
        """Remember statuses beside those that are kept already; never raises for the disk."""
        kept = {**self._read(), **statuses}
        fresh = self._path.with_suffix(f".{os.getpid()}")
        text = json.dumps({task: [str(one) for one in pair] for task, pair in kept.items()})
        with contextlib.suppress(OSError):
            fresh.touch(0o600)
            fresh.write_text(text)
            fresh.replace(self._path)

    def settle(self, file: ManifestFile) -> None:
        """Write to the manifest what it should have had; what it cannot take yet stays kept."""
        kept = self._read()
        if not kept:
            return
        try:
            known = {task.id: task.status for task in file.load().tasks}
        except LoopctlError:
            return
        left = {
            task: (was, status)
            for task, (was, status) in kept.items()
            if _is_to_be_written(known.get(task), was, status)
            and not file.write_status(task, status)
        }
        with contextlib.suppress(OSError):
            self._path.unlink(missing_ok=True)
        if left:
            self.keep(left)

    def over(self, manifest: Manifest) -> Manifest:
        """Return the manifest as the next run will have it; nothing is written."""
        kept = self._read()
        if not kept:
            return manifest
        tasks = tuple(
            replace(task, status=kept[task.id][1])
            if task.id in kept and _is_to_be_written(task.status, *kept[task.id])
            else task
            for task in manifest.tasks
        )
        return replace(manifest, tasks=tasks)

    def _read(self) -> dict[TaskId, tuple[TaskStatus, TaskStatus]]:
        """Return what is kept; a file that somebody has changed counts for nothing."""
        try:
            document = json.loads(self._path.read_bytes())
            return {
                TaskId(task): (TaskStatus(was), TaskStatus(status))
                for task, (was, status) in document.items()
            }
        except (OSError, ValueError, TypeError, AttributeError):
            return {}


def _is_to_be_written(now: TaskStatus | None, was: TaskStatus, status: TaskStatus) -> bool:
    """A task that was worked on and has landed has landed, whatever manifest was put back."""
    has_landed = (was, status) == (TaskStatus.IN_PROGRESS, TaskStatus.DONE)
    return now is was or (has_landed and now is TaskStatus.TODO)
