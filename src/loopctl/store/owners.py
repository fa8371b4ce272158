"""Which of the processes that began a call are still there.

Each owner is a file that its process has locked. The kernel gives the lock up when the process
ends, however it ends: so a call without a result is known to be left behind, and not under way.
"""

import fcntl
import os
import secrets
import threading
from pathlib import Path

FOLDER = "owners"


class Owners:
    """The owners of one checkout; this process is one of them from the first look at its name.

    Args:
        folder: Holds a file for each; made with mode 0700 when it is needed.
    """

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._lock = threading.Lock()
        self._name = ""
        self._file = -1

    @property
    def mine(self) -> str:
        """The name of this owner: 32 hexadecimal digits, never used before."""
        with self._lock:
            if not self._name:
                self._name, self._file = self._enter()
            return self._name

    def is_alive(self, name: str) -> bool:
        """Say whether the owner of that name is still there; the file of a dead one is removed."""
        if name == self._name:
            return True
        path = self._folder / name
        try:
            file = os.open(path, os.O_RDONLY)
        except FileNotFoundError:
            return False
        try:
            fcntl.flock(file, fcntl.LOCK_SH | fcntl.LOCK_NB)
        except BlockingIOError:
            return True
        else:
            path.unlink(missing_ok=True)
            return False
        finally:
            os.close(file)

    def sweep(self) -> None:
        """Remove the files of all owners that are dead."""
        if self._folder.is_dir():
            for path in list(self._folder.iterdir()):
                self.is_alive(path.name)

    def close(self) -> None:
        """End this owner."""
        with self._lock:
            if self._name:
                (self._folder / self._name).unlink(missing_ok=True)
                os.close(self._file)
                self._name = ""

    def _enter(self) -> tuple[str, int]:
        """Make a file and lock it; again where somebody swept it away before it was locked."""
        self._folder.mkdir(mode=0o700, exist_ok=True)
        while True:
            name = secrets.token_hex(16)
            path = self._folder / name
            file = os.open(path, os.O_RDWR | os.O_CREAT | os.O_EXCL, 0o600)
            fcntl.flock(file, fcntl.LOCK_EX)
            try:
                if path.stat().st_ino == os.fstat(file).st_ino:
                    return name, file
            except FileNotFoundError:
                pass
            os.close(file)
