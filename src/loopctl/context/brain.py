"""The local brain: rebuilds the thread of a run from the capsule on disk."""

import contextlib
import os
import re
import threading
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from loopctl import failpoints
from loopctl.context.capsule import parse, render, without_keys
from loopctl.disk import machine_errors
from loopctl.records import Capsule
from loopctl.redaction import Redactor

FILE_NAME: Final = "context.md"

_UNWRITABLE: Final = re.compile("[\ud800-\udc7f\udd00-\udfff]")
"""Halves of a character that stand for no byte of a file; a worker's JSON can hold them."""


@dataclass(frozen=True, slots=True)
class _Known:
    """What the file held when this process last read or wrote it."""

    stat: tuple[int, int, int]
    data: bytes
    capsule: Capsule


class LocalBrain:
    """The port ``Brain`` over ``context.md`` in the run's folder.

    The file is the truth: it is read again as soon as its inode, size or time of change differ
    from what this process last saw. What is the same is neither parsed nor written again.

    Args:
        folder: Of the run; exists.
        goal: What an unreadable or missing capsule is begun anew with.
        redact: Takes keys out of everything but the goal, which stays as it is.
    """

    def __init__(self, folder: Path, goal: str, redact: Redactor | None = None) -> None:
        self._redact = redact
        self._path = folder / FILE_NAME
        self._goal = goal
        self._lock = threading.RLock()
        self._known: _Known | None = None
        # A killed process may have left its draft, and this one may write none in its place.
        with contextlib.suppress(OSError):
            self._draft.unlink()

    def boot(self) -> Capsule:
        """Return the capsule as it is on disk; the goal alone where there is none."""
        with self._lock:
            known = self._fresh()
            if known is not None:
                return known.capsule
            try:
                with self._path.open("rb") as stream:
                    stat = _stat(stream.fileno())
                    data = stream.read()
                capsule = parse(data.decode("utf-8", "surrogateescape"))
            except (FileNotFoundError, ValueError, KeyError):
                return Capsule(goal=self._goal)
            self._known = _Known(stat, data, capsule)
            return capsule

    def carry(self, capsule: Capsule) -> None:
        """Write the capsule, atomically, synced and with mode 0600; nothing where it is the same.

        Raises:
            MachineError: It cannot be written; the one before is whole.
        """
        if self._redact is not None:
            capsule = without_keys(capsule, self._redact)
        text, mended = _UNWRITABLE.subn("\ufffd", render(capsule))
        data = text.encode("utf-8", "surrogateescape")
        with self._lock, machine_errors(f"the capsule {self._path} cannot be written"):
            known = self._fresh()
            if known is not None and known.data == data:
                return
            try:
                stat = self._replace(data)
            except OSError:
                with contextlib.suppress(OSError):
                    self._draft.unlink()
                raise
            # A text that was mended is not the one that a reader gets.
            self._known = None if mended else _Known(stat, data, capsule)

    @property
    def _draft(self) -> Path:
        return self._path.with_suffix(".tmp")

    def _replace(self, data: bytes) -> tuple[int, int, int]:
        file = os.open(self._draft, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600)
        with os.fdopen(file, "wb") as stream:
            stream.write(data)
            stream.flush()
            os.fsync(stream.fileno())
            stat = _stat(stream.fileno())
        failpoints.reach("capsule.before_replace")
        self._draft.replace(self._path)
        failpoints.reach("capsule.after_replace")
        return stat

    def update(self, change: Callable[[Capsule], Capsule]) -> None:
        """Carry what ``change`` makes of the booted capsule; one change at a time."""
        with self._lock:
            self.carry(change(self.boot()))

    def _fresh(self) -> _Known | None:
        """Return what is known of the file, where it is still the same one."""
        try:
            found = self._path.stat()
        except FileNotFoundError:
            return None
        known = self._known
        is_same = known is not None and known.stat == _key(found)
        return known if is_same else None


def _stat(file: int) -> tuple[int, int, int]:
    return _key(os.fstat(file))


def _key(found: os.stat_result) -> tuple[int, int, int]:
    return found.st_ino, found.st_size, found.st_mtime_ns
