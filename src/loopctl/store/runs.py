"""Runs in the database."""

import json
import sqlite3
from dataclasses import asdict

from loopctl.domain import RunStatus, Scope, Sha, TaskId
from loopctl.records import RunRecord
from loopctl.store.database import Database


class SqliteRuns:
    """The port ``RunStore`` over SQLite."""

    def __init__(self, database: Database) -> None:
        self._database = database

    def create_run(self, record: RunRecord) -> None:
        """Remember a new run."""
        with self._database.write() as connection:
            connection.execute(
                "INSERT INTO runs (id, status, goal, base, branch, started, scope, verify_cmd,"
                " is_wip, settings, settings_hash) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)",
                (
                    record.id,
                    record.status,
                    record.goal,
                    record.base,
                    record.branch,
                    record.started,
                    json.dumps(asdict(record.scope)),
                    record.verify_cmd,
                    record.is_wip,
                    record.settings_json,
                    record.settings_hash,
                ),
            )

    def set_run_status(self, run_id: str, status: RunStatus, ended: str | None) -> None:
        """Remember how a run stands."""
        with self._database.write() as connection:
            connection.execute(
                "UPDATE runs SET status = ?, ended = ? WHERE id = ?", (status, ended, run_id)
            )

    def run(self, run_id: str) -> RunRecord | None:
        """Return one run."""
        rows = self._database.rows("SELECT * FROM runs WHERE id = ?", (run_id,))
        return _record(rows[0]) if rows else None

    def runs(self) -> tuple[RunRecord, ...]:
        """Return all runs, the newest first."""
        rows = self._database.rows("SELECT * FROM runs ORDER BY rowid DESC")
        return tuple(_record(row) for row in rows)


def _record(row: sqlite3.Row) -> RunRecord:
    scope = json.loads(row["scope"])
    return RunRecord(
        id=row["id"],
        status=RunStatus(row["status"]),
        goal=row["goal"],
        base=Sha(row["base"]),
        branch=row["branch"],
        started=row["started"],
        ended=row["ended"],
        scope=Scope(
            ids=tuple(TaskId(task) for task in scope["ids"]),
            areas=tuple(scope["areas"]),
            with_deps=scope["with_deps"],
        ),
        verify_cmd=row["verify_cmd"],
        is_wip=bool(row["is_wip"]),
        settings_json=row["settings"],
        settings_hash=row["settings_hash"],
    )
