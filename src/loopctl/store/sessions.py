"""Sessions and their checkpoints in the database."""

import hashlib
import sqlite3
from dataclasses import replace

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
        """Return the session of that candidate, made now or earlier, with its last checkpoint.

        An interrupt of the step after that comes with it, and is never taken for a checkpoint.
        """
        session_id = f"{run_id}/{task}/{candidate}"
        with self._database.write() as connection:
            connection.execute(
                "INSERT INTO sessions (id, run_id, task, candidate, base) VALUES (?, ?, ?, ?, ?)"
                " ON CONFLICT DO NOTHING",
                (session_id, run_id, task, candidate, base),
            )
            (row,) = connection.execute(
                "SELECT s.*, c.loop_iteration, c.blob FROM sessions s LEFT JOIN checkpoints c"
                " ON c.session_id = s.id AND c.loop_iteration < ?"
                " WHERE s.id = ? ORDER BY c.loop_iteration DESC LIMIT 1",
                (plan.INTERRUPT_FLAG, session_id),
            ).fetchall()
            record = _record(row)
            found = _newest_interrupt(connection, session_id, record.iteration + 1)
        return replace(record, interrupt=found[1]) if found is not None else record

    def last_run(self, task: TaskId) -> str | None:
        """Return the run that was the last to open a session of a task."""
        rows = self._database.rows(
            "SELECT run_id FROM sessions WHERE task = ? ORDER BY rowid DESC LIMIT 1", (task,)
        )
        return str(rows[0]["run_id"]) if rows else None

    def save_checkpoint(self, session_id: str, iteration: int, checkpoint: plan.Checkpoint) -> None:
        """Save one iteration, and drop the step's interrupts; the same again is a no-op.

        What a model has answered in the step goes with it: nobody asks for it any more.

        Raises:
            CheckpointConflictError: The iteration exists with other contents.
            ValueError: The iteration is not below ``plan.ITERATION_LIMIT``.
        """
        plan.check_iteration(iteration)
        blob = plan.rewritten(plan.encode(checkpoint), self._database.without_keys)
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
            if found == digest:
                connection.execute(
                    "DELETE FROM checkpoints WHERE session_id = ? AND loop_iteration >= ?"
                    " AND loop_iteration % ? <= ?",
                    (session_id, plan.INTERRUPT_FLAG, plan.ITERATION_LIMIT, iteration),
                )
                connection.execute(
                    "DELETE FROM replies WHERE session_id = ? AND iteration <= ?",
                    (session_id, iteration),
                )
        if found != digest:
            raise CheckpointConflictError(session_id, iteration)

    def save_interrupt(self, session_id: str, iteration: int, interrupt: plan.Interrupt) -> None:
        """Save that a step waits for a person; the newest one of the step counts.

        Raises:
            CheckpointConflictError: The step has come to its end already.
            ValueError: The iteration is not below ``plan.ITERATION_LIMIT``.
        """
        plan.check_iteration(iteration)
        blob = plan.rewritten(plan.encode_interrupt(interrupt), self._database.without_keys)
        with self._database.write() as connection:
            if has_ended(connection, session_id, iteration):
                raise CheckpointConflictError(session_id, iteration)
            last = _newest_interrupt(connection, session_id, iteration)
            if last is not None and last[1] == interrupt:
                return
            key = plan.interrupt_key(iteration, 0) if last is None else plan.next_key(last[0])
            connection.execute(
                "INSERT INTO checkpoints (session_id, loop_iteration, hash, blob)"
                " VALUES (?, ?, ?, ?)",
                (session_id, key, hashlib.sha256(blob).hexdigest(), blob),
            )


def has_ended(connection: sqlite3.Connection, session_id: str, iteration: int) -> bool:
    """Return whether a step, or one after it, has its checkpoint."""
    row = connection.execute(
        "SELECT 1 FROM checkpoints WHERE session_id = ? AND loop_iteration BETWEEN ? AND ? LIMIT 1",
        (session_id, iteration, plan.ITERATION_LIMIT),
    ).fetchone()
    return row is not None


def _newest_interrupt(
    connection: sqlite3.Connection, session_id: str, iteration: int
) -> tuple[int, plan.Interrupt] | None:
    """Return the step's interrupt that counts, and the number that it is saved under."""
    row = connection.execute(
        "SELECT loop_iteration, blob FROM checkpoints WHERE session_id = ? AND loop_iteration >= ?"
        " AND loop_iteration % ? = ? ORDER BY loop_iteration DESC LIMIT 1",
        (session_id, plan.INTERRUPT_FLAG, plan.ITERATION_LIMIT, iteration),
    ).fetchone()
    return (row["loop_iteration"], plan.decode_interrupt(row["blob"])) if row else None


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
