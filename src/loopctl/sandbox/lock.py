"""A lock among all processes on this machine: held by an open file, so it dies with its owner."""

import fcntl
import os
import weakref
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path


@contextmanager
def locked(path: Path) -> Iterator[None]:
    """Hold the lock that is the file ``path``; waits for whoever holds it.

    Each call opens the file anew, so it keeps threads of one process apart as well.
    """
    descriptor = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX)
        yield
    finally:
        os.close(descriptor)


class Presence:
    """Says to other processes that this one uses a folder; they see it end, however it ends."""

    def __init__(self, path: Path) -> None:
        self._descriptor = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
        weakref.finalize(self, os.close, self._descriptor)

    def is_alone(self) -> bool:
        """Return whether nobody else is there; nobody comes before :meth:`join` is called."""
        try:
            fcntl.flock(self._descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            return False
        return True

    def join(self) -> None:
        """Be there, together with others."""
        fcntl.flock(self._descriptor, fcntl.LOCK_SH)
