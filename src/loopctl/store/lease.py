"""One process drives a repository: a lease that ends with its owner."""

import contextlib
import fcntl
import json
import os
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Final

from loopctl.disk import machine_errors
from loopctl.errors import LeaseHeldError

FILE_NAME: Final = "lease.json"

_LOOKS: Final = 25
_LOOK_S: Final = 0.02


class Lease:
    """Held by this process; the kernel gives it up when the process ends, however it does."""

    def __init__(self, file: int) -> None:
        self._file = file

    def name_run(self, run_id: str) -> None:
        """Tell others which run this process drives now."""
        text = json.dumps({"pid": os.getpid(), "run": run_id}).encode()
        with machine_errors(f"the lease {FILE_NAME} cannot be written"):
            # Whoever reads in between finds the old words or the new ones, with spaces at most.
            os.pwrite(self._file, text.ljust(os.fstat(self._file).st_size), 0)
            os.ftruncate(self._file, len(text))


@contextlib.contextmanager
def hold(local: Path) -> Iterator[Lease]:
    """Hold the repository's lease; ``local`` is made where it is missing.

    Raises:
        MachineError: ``local`` cannot be written.
        LeaseHeldError: Another process has it; names it.
    """
    with machine_errors(f"{local} cannot be written"):
        local.mkdir(mode=0o700, exist_ok=True)
        file = os.open(local / FILE_NAME, os.O_RDWR | os.O_CREAT, 0o600)
    try:
        _lock(file)
        lease = Lease(file)
        lease.name_run("")
        yield lease
        os.ftruncate(file, 0)
    finally:
        os.close(file)


def _lock(file: int) -> None:
    """Take the lock; waits a moment, since :func:`owner` and a dying process hold it for one."""
    looks = threading.Event()
    for _ in range(_LOOKS):
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError:
            looks.wait(_LOOK_S)
        else:
            return
    raise LeaseHeldError(*_read(file))


def owner(local: Path) -> tuple[int, str] | None:
    """Return pid and run of the process that holds the lease; ``None`` when nobody does."""
    try:
        file = os.open(local / FILE_NAME, os.O_RDONLY)
    except (FileNotFoundError, NotADirectoryError):
        return None
    try:
        fcntl.flock(file, fcntl.LOCK_SH | fcntl.LOCK_NB)
    except OSError:
        return _read(file)
    else:
        return None
    finally:
        os.close(file)


def _read(file: int) -> tuple[int, str]:
    try:
        held = json.loads(os.pread(file, 4096, 0))
        return int(held["pid"]), str(held["run"])
    except (ValueError, KeyError, TypeError):
        return 0, ""
