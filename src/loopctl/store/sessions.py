"""Sessions and their checkpoints in the database."""

import hashlib
import sqlite3

from loopctl import plan
from loopctl.domain import Sha, TaskId
from loopctl.errors import CheckpointConflictError
from loopctl.records import SessionRecord
from loopctl.store.database import Database


class SqliteSessions:
    """The port ``SessionStore`` over SQLite."""

    def __init__(self, database: Database) -> None:
        self._database = database

    def open_session(self, run_id: str, task: TaskId, candidate: str, base: Sha) -> SessionRecord:
        """Return the session of that candidate, made now or earlier, with its last checkpoint."""
        session_id = f"{run_id}/{task}/{candidate}"
        with self._database.write() as connection:
            connection.execute(
                "INSERT INTO sessions (id, run_id, task, candidate, base) VALUES (?, ?, ?, ?, ?)"
                " ON CONFLICT DO NOTHING",
                (session_id, run_id, task, candidate, base),
            )
        rows = self._database.rows(
            "SELECT s.*, c.loop_iteration, c.blob FROM sessions s LEFT JOIN checkpoints c"
            " ON c.session_id = s.id WHERE s.id = ? ORDER BY c.loop_iteration DESC LIMIT 1",
            (session_id,),
        )
        return _record(rows[0])

    def last_run(self, task: TaskId) -> str | None:
        """Return the run that was the last to open a session of a task."""
        rows = self._database.rows(
            "SELECT run_id FROM sessions WHERE task = ? ORDER BY rowid DESC LIMIT 1", (task,)
        )
        return str(rows[0]["run_id"]) if rows else None

    def save_checkpoint(self, session_id: str, iteration: int, checkpoint: plan.Checkpoint) -> None:
        """Save one iteration; the same again is a no-op.

        Raises:
            CheckpointConflictError: The iteration exists with other contents.
        """
        blob = plan.encode(checkpoint)
        digest = hashlib.sha256(blob).hexdigest()
        with self._database.write() as connection:
            connection.execute(
                "INSERT INTO checkpoints (session_id, loop_iteration, hash, blob)"
                " VALUES (?, ?, ?, ?) ON CONFLICT DO NOTHING",
                (session_id, iteration, digest, blob),
            )
            (found,) = connection.execute(
                "SELECT hash FROM checkpoints WHERE session_id = ? AND loop_iteration = ?",
                (session_id, iteration),
            ).fetchone()
        if found != digest:
            raise CheckpointConflictError(session_id, iteration)


def _record(row: sqlite3.Row) -> SessionRecord:
    return SessionRecord(
        id=row["id"],
        run_id=row["run_id"],
        task=TaskId(row["task"]),
        candidate=row["candidate"],
        base=Sha(row["base"]),
        iteration=row["loop_iteration"] or 0,
        checkpoint=plan.decode(row["blob"]) if row["blob"] is not None else None,
    )
