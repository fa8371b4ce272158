"""The local brain: rebuilds the thread of a run from the capsule on disk."""

import contextlib
import os
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Final

from loopctl import failpoints
from loopctl.context.capsule import parse, render
from loopctl.disk import machine_errors
from loopctl.records import Capsule

FILE_NAME: Final = "context.md"


class LocalBrain:
    """The port ``Brain`` over ``context.md`` in the run's folder.

    Args:
        folder: Of the run; exists.
        goal: What an unreadable or missing capsule is begun anew with.
    """

    def __init__(self, folder: Path, goal: str) -> None:
        self._path = folder / FILE_NAME
        self._goal = goal
        self._lock = threading.RLock()
        # A killed process may have left its draft, and this one may write none in its place.
        with contextlib.suppress(OSError):
            self._draft.unlink()

    def boot(self) -> Capsule:
        """Return the capsule as it is on disk; the goal alone where there is none."""
        try:
            return parse(self._path.read_text("utf-8", "surrogateescape"))
        except (FileNotFoundError, ValueError, KeyError):
            return Capsule(goal=self._goal)

    def carry(self, capsule: Capsule) -> None:
        """Write the capsule, atomically and with mode 0600.

        Raises:
            MachineError: It cannot be written; the one before is whole.
        """
        data = render(capsule).encode("utf-8", "surrogateescape")
        with self._lock, machine_errors(f"the capsule {self._path} cannot be written"):
            try:
                self._replace(data)
            except OSError:
                with contextlib.suppress(OSError):
                    self._draft.unlink()
                raise

    @property
    def _draft(self) -> Path:
        return self._path.with_suffix(".tmp")

    def _replace(self, data: bytes) -> None:
        file = os.open(self._draft, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600)
        with os.fdopen(file, "wb") as stream:
            stream.write(data)
            stream.flush()
            os.fsync(stream.fileno())
        failpoints.reach("capsule.before_replace")
        self._draft.replace(self._path)
        failpoints.reach("capsule.after_replace")

    def update(self, change: Callable[[Capsule], Capsule]) -> None:
        """Carry what ``change`` makes of the booted capsule; one change at a time."""
        with self._lock:
            self.carry(change(self.boot()))
