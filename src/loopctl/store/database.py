"""Opens ``.local/loop.db``: one connection for the process, every write one transaction."""

import contextlib
import errno
import sqlite3
import threading
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any, Final

from loopctl import failpoints
from loopctl.disk import describe
from loopctl.errors import SchemaTooNewError, StoreError
from loopctl.redaction import Redactor
from loopctl.store.upgrades import UPGRADES

FILE_NAME: Final = "loop.db"
SCHEMA_VERSION: Final = 4
_BUSY_MS: Final = 5000
_CACHE_KIB: Final = 512
"""Steps are written, and seldom read again: a larger one would only fill up over a night."""
_MACHINES: Final = ("SQLITE_FULL", "SQLITE_READONLY", "SQLITE_CANTOPEN", "SQLITE_IOERR")
"""What SQLite says where the machine is at fault, and not the file."""


class Database:
    """A connection that threads share; WAL, ``synchronous=FULL``, explicit transactions."""

    def __init__(self, connection: sqlite3.Connection, redact: Redactor | None = None) -> None:
        self._connection = connection
        self._redact = redact
        self._lock = threading.RLock()

    def close(self) -> None:
        """Close the connection; what was committed stays."""
        with self._lock:
            self._connection.close()

    def without_keys(self, text: str) -> str:
        """Return a text, or a JSON document, as it may be written: the keys taken out."""
        return text if self._redact is None else self._redact.document(text)

    def rows(self, sql: str, args: Sequence[Any] = ()) -> list[sqlite3.Row]:
        """Return all rows of a query.

        Raises:
            StoreError: The database cannot be read.
        """
        with self._lock, _named_errors():
            return self._connection.execute(sql, args).fetchall()

    @contextlib.contextmanager
    def write(self) -> Iterator[sqlite3.Connection]:
        """Hold the one write transaction; commits at the end, rolls back on any exception.

        Raises:
            StoreError: The database cannot be written; nothing of the transaction was.
        """
        with self._lock, _named_errors():
            self._connection.execute("BEGIN IMMEDIATE")
            try:
                yield self._connection
                failpoints.reach("database.before_commit")
                self._connection.execute("COMMIT")
                failpoints.reach("database.after_commit")
            except BaseException:
                if self._connection.in_transaction:
                    self._connection.execute("ROLLBACK")
                raise


def open_database(
    path: Path, *, is_checked: bool = False, redact: Redactor | None = None
) -> Database:
    """Return the database at ``path``, made with mode 0600 where there is none.

    Args:
        path: Of the file.
        is_checked: All of it is looked at first, since what is damaged may be met too late.
        redact: Takes keys out of the texts that the stores write.

    Raises:
        StoreError: It is damaged, locked, or cannot be written; or it is empty or gone, though runs
            that it should know have left their folders.
        SchemaTooNewError: A newer version of ``loop`` wrote it.
    """
    with _named_errors(path):
        if is_lost(path):
            raise StoreError(
                f"the database {path} is {'empty' if path.exists() else 'gone'}, and with it what "
                f"is known of the runs in {path.parent / 'runs'}; put back what it was, or move "
                "that folder away to begin anew: results on the branch and kept trees are in git"
            )
        path.touch(mode=0o600, exist_ok=True)
        connection = sqlite3.connect(path, isolation_level=None, check_same_thread=False)
        try:
            _configure(connection)
            if is_checked:
                _check(connection)
            _bring_up_to_date(connection)
        except BaseException:
            connection.close()
            raise
    return Database(connection, redact)


def is_lost(path: Path) -> bool:
    """Return whether a database holds nothing though runs have left their folders beside it."""
    is_empty = not path.exists() or not path.stat().st_size
    return is_empty and any(path.parent.glob("runs/*"))


def _configure(connection: sqlite3.Connection) -> None:
    connection.row_factory = sqlite3.Row
    for pragma in (
        f"busy_timeout={_BUSY_MS}",
        "journal_mode=WAL",
        "synchronous=FULL",
        "foreign_keys=ON",
        "trusted_schema=OFF",
        f"cache_size=-{_CACHE_KIB}",
    ):
        connection.execute(f"PRAGMA {pragma}")


def _bring_up_to_date(connection: sqlite3.Connection) -> None:
    """Make or upgrade the tables; a file that has them is only read."""
    if _version(connection) == SCHEMA_VERSION:
        return
    connection.execute("BEGIN IMMEDIATE")
    version = _version(connection)
    for statement in _schema().split(";") if version == 0 else _upgrade(version):
        connection.execute(statement)
    connection.execute(f"PRAGMA user_version={SCHEMA_VERSION}")
    connection.execute("COMMIT")


def _version(connection: sqlite3.Connection) -> int:
    version = int(connection.execute("PRAGMA user_version").fetchone()[0])
    if version > SCHEMA_VERSION:
        raise SchemaTooNewError(version, SCHEMA_VERSION)
    return version


def _check(connection: sqlite3.Connection) -> None:
    (found,) = connection.execute("PRAGMA quick_check(1)").fetchone()
    if found != "ok":
        raise sqlite3.DatabaseError(" ".join(str(found).split()))


def _upgrade(version: int) -> Iterator[str]:
    """Yield the statements that bring a file of ``version`` up to the present one."""
    for target, statements in UPGRADES:
        if target > version:
            yield from statements


def _schema() -> str:
    text = Path(__file__).with_name("schema.sql").read_text("utf-8")
    return "\n".join(line for line in text.splitlines() if not line.startswith("--"))


@contextlib.contextmanager
def _named_errors(path: Path | None = None) -> Iterator[None]:
    where = f" {path}" if path else " .local/loop.db"
    try:
        yield
    except sqlite3.DatabaseError as exc:
        if getattr(exc, "sqlite_errorname", "").startswith(_MACHINES):
            raise StoreError(f"the database{where} cannot be used: {_plainly(exc)}") from exc
        raise StoreError(
            f"the database{where} cannot be used: {exc}; if it is damaged, move it, its -wal "
            "and -shm files and the folder runs beside it away: results on the branch and kept "
            "trees are in git"
        ) from exc
    except OSError as exc:
        raise StoreError(f"the database{where} cannot be opened: {describe(exc)}") from exc


def _plainly(error: sqlite3.DatabaseError) -> str:
    if error.sqlite_errorname.startswith("SQLITE_FULL"):
        return describe(OSError(errno.ENOSPC, ""))
    return f"{error}; see to it that its folder can be written, and that the disk is not full"
