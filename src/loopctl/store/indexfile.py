"""Opens ``.local/recall.db``: made anew where it is in doubt, in memory where there is no file.

SQLite must not lose a file that another process has open. So every process that uses it holds a
shared lock on a file beside it, and only one that is alone there looks it over and removes it.
"""

import contextlib
import fcntl
import os
import sqlite3
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Final

from loopctl.errors import StoreError

FILE_NAME: Final = "recall.db"
LOCK_NAME: Final = "recall.lock"
SCHEMA_VERSION: Final = 1
"""Also another one when texts are read or cut in another way: then all of them are read again."""

_BUSY_MS: Final = 5000
_LOOKS: Final = 50
_LOOK_S: Final = 0.02


class IndexFile:
    """The one connection of this process; threads share it under a lock of their own.

    Attributes:
        connection: Explicit transactions; replaced by :meth:`remake`.
    """

    def __init__(self, local: Path) -> None:
        self._path = local / FILE_NAME
        self._lock = _open_lock(local / LOCK_NAME)
        self.connection = self._opened()

    def remake(self) -> None:
        """Begin with an empty file; in memory where others use this one, or none can be made."""
        self.connection.close()
        self.connection = self._fresh()

    def close(self) -> None:
        """Close the connection and let others have the file to themselves."""
        self.connection.close()
        if self._lock is not None:
            os.close(self._lock)
            self._lock = None

    def _opened(self) -> sqlite3.Connection:
        is_alone = self._take(fcntl.LOCK_EX)
        try:
            if not (is_alone or self._share()):
                return _in_memory()
            with contextlib.suppress(sqlite3.Error, OSError):
                return _checked(self._path, is_alone=is_alone)
        finally:
            if is_alone:
                self._take(fcntl.LOCK_SH)
        return self._fresh()

    def _fresh(self) -> sqlite3.Connection:
        try:
            if self._take(fcntl.LOCK_EX):
                for ending in ("", "-wal", "-shm"):
                    self._path.with_name(FILE_NAME + ending).unlink(missing_ok=True)
                return _checked(self._path, is_alone=False)
        except (sqlite3.Error, OSError):
            return _in_memory()
        finally:
            self._take(fcntl.LOCK_SH)
        return _in_memory()

    def _share(self) -> bool:
        """Return whether the file can be used, once who looks it over has let go."""
        looks = threading.Event()
        for _ in range(_LOOKS):
            if self._take(fcntl.LOCK_SH):
                return True
            looks.wait(_LOOK_S)
        return False

    def _take(self, how: int) -> bool:
        """Return whether the lock could be had in this way, at once."""
        if self._lock is None:
            return False
        try:
            fcntl.flock(self._lock, how | fcntl.LOCK_NB)
        except OSError:
            return False
        return True


@contextlib.contextmanager
def named_errors() -> Iterator[None]:
    """Turn what SQLite refuses into a :class:`StoreError`."""
    try:
        yield
    except sqlite3.Error as exc:
        raise StoreError(
            f"the index .local/{FILE_NAME} cannot be used: {exc}; it may be deleted while nothing "
            "runs, and is made again"
        ) from exc


def _open_lock(path: Path) -> int | None:
    try:
        return os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
    except OSError:
        return None


def _checked(path: Path, *, is_alone: bool) -> sqlite3.Connection:
    """Return a connection to the file, its tables made where there are none.

    Raises:
        sqlite3.Error: It is damaged, or of another version.
        OSError: It cannot be made.
    """
    path.touch(mode=0o600, exist_ok=True)
    connection = sqlite3.connect(path, isolation_level=None, check_same_thread=False)
    try:
        for pragma in (f"busy_timeout={_BUSY_MS}", "journal_mode=WAL", "synchronous=NORMAL"):
            connection.execute(f"PRAGMA {pragma}")
        _prepare(connection)
        if is_alone:
            _look_over(connection)
    except BaseException:
        connection.close()
        raise
    return connection


def _look_over(connection: sqlite3.Connection) -> None:
    found = connection.execute("PRAGMA quick_check(1)").fetchone()
    if found != ("ok",):
        raise sqlite3.DatabaseError(f"the index is damaged: {found}")


def _in_memory() -> sqlite3.Connection:
    connection = sqlite3.connect(":memory:", isolation_level=None, check_same_thread=False)
    _prepare(connection)
    return connection


def _prepare(connection: sqlite3.Connection) -> None:
    connection.execute("PRAGMA trusted_schema=OFF")
    connection.execute("BEGIN IMMEDIATE")
    (version,) = connection.execute("PRAGMA user_version").fetchone()
    if version not in {0, SCHEMA_VERSION}:
        raise sqlite3.DatabaseError(f"the index is of version {version}")
    if version == 0:
        text = Path(__file__).with_name("memories.sql").read_text("utf-8")
        lines = (line for line in text.splitlines() if not line.startswith("--"))
        for statement in "\n".join(lines).split(";"):
            connection.execute(statement)
        connection.execute(f"PRAGMA user_version={SCHEMA_VERSION}")
    connection.execute("COMMIT")
