"""The ledger in the database: what left the sandbox, so that none of it is done twice.

A row's life: ``intent`` before the effect, ``done`` with its result after it. A row that its
owner has left in ``intent`` becomes ``unknown``: from there it is only finished by a probe that
has found the effect, by an attempt after a probe that has found none, or by a person.
"""

import json
import sqlite3
from datetime import datetime, timedelta
from typing import Final

from loopctl import calls
from loopctl.calls import Fresh, Recorded, Reserved, ToolCall, ToolResult, Unapproved, Unknown
from loopctl.clock import Clock, stamp
from loopctl.errors import CallInFlightError, LedgerConflictError
from loopctl.failpoints import reach
from loopctl.store import approvals
from loopctl.store.database import Database
from loopctl.store.owners import Owners

SESSION_LIFETIME: Final = timedelta(days=30)
"""How long after a call its session may still go on: a run waits for its answers that long."""

GRACE: Final = timedelta(days=7)
"""Added to it, for an answer that comes late and for a clock that was set."""


class SqliteLedger:
    """The port ``Ledger`` over SQLite; each member is one transaction."""

    def __init__(self, database: Database, clock: Clock, owners: Owners) -> None:
        self._database = database
        self._clock = clock
        self._owners = owners

    def reserve(
        self, call: ToolCall, *, needs_approval: bool = False, approval: str | None = None
    ) -> Reserved:
        """Write the intent of a call that was never seen; else say what is known of it.

        Raises:
            LedgerConflictError: The key was used with another tool or other arguments.
            CallInFlightError: Another owner that is alive is at it, or another thread.
        """
        reach("ledger.before_intent")
        mine = self._owners.mine
        with self._database.write() as connection:
            row = _row(connection, call.key)
            found: Reserved = (
                self._begin(connection, call, mine, approval, needs_approval=needs_approval)
                if row is None
                else self._known(connection, call, row, mine)
            )
        reach("ledger.after_intent")
        return found

    def finish(self, call: ToolCall, result: ToolResult | None) -> None:
        """Record the result of a call that is this process's; ``None`` when nobody knows it.

        Raises:
            LedgerConflictError: The call is another's, or has another result.
        """
        reach("ledger.before_done")
        text = None
        if result is not None:
            text = self._database.without_keys(dump_result(result))
        with self._database.write() as connection:
            row = self._own(connection, call)
            if row["state"] == "done":
                if row["result"] != text:
                    raise LedgerConflictError(call.key, "it has another result already")
            else:
                connection.execute(
                    "UPDATE calls SET state = ?, result = ? WHERE key = ?",
                    ("unknown" if text is None else "done", text, call.key),
                )
        reach("ledger.after_done")

    def abandon(self, call: ToolCall) -> None:
        """Forget a call of this process's that surely did not happen; it may be made again.

        Raises:
            LedgerConflictError: The call is another's, or has its result.
        """
        with self._database.write() as connection:
            row = self._own(connection, call)
            if row["state"] == "done":
                raise LedgerConflictError(call.key, "it has its result already")
            connection.execute("DELETE FROM calls WHERE key = ?", (call.key,))

    def purge(self, now: datetime) -> int:
        """Drop what has expired and can matter no more; return how many calls that were.

        A call without a result stays as long as its run can be resumed, however old it is; so
        does one whose step has no checkpoint yet.
        """
        self._owners.sweep()
        with self._database.write() as connection:
            return connection.execute(
                "DELETE FROM calls WHERE expires <= ? AND ("
                " EXISTS (SELECT 1 FROM sessions s JOIN runs r ON r.id = s.run_id"
                "  WHERE s.id = calls.session_id AND r.status = 'complete')"
                " OR (state = 'done' AND EXISTS (SELECT 1 FROM checkpoints c"
                "  WHERE c.session_id = calls.session_id AND c.loop_iteration = calls.iteration)))",
                (stamp(now),),
            ).rowcount

    def _begin(
        self,
        connection: sqlite3.Connection,
        call: ToolCall,
        mine: str,
        approval: str | None,
        *,
        needs_approval: bool,
    ) -> Fresh | Unapproved:
        now = self._clock.now()
        if needs_approval:
            refusal = approvals.redeem(connection, approval, call, stamp(now))
            if refusal:
                return Unapproved(refusal)
        connection.execute(
            "INSERT INTO calls (key, session_id, iteration, ordinal, tool, args_sha256, state,"
            " owner, created, expires) VALUES (?, ?, ?, ?, ?, ?, 'intent', ?, ?, ?)",
            (
                call.key,
                call.session_id,
                call.iteration,
                call.ordinal,
                call.tool,
                call.arguments_hash,
                mine,
                stamp(now),
                stamp(now + SESSION_LIFETIME + GRACE),
            ),
        )
        return Fresh()

    def _known(
        self, connection: sqlite3.Connection, call: ToolCall, row: sqlite3.Row, mine: str
    ) -> Recorded | Unknown:
        if (row["tool"], row["args_sha256"]) != (call.tool, call.arguments_hash):
            raise LedgerConflictError(
                call.key, f"{call.tool} was called under it before, or with other arguments"
            )
        if row["state"] == "done":
            return Recorded(_load(row["result"]))
        if row["owner"] == mine:
            is_under_way = row["state"] == "intent"
        else:
            is_under_way = self._owners.is_alive(row["owner"])
        if is_under_way:
            raise CallInFlightError(call.key, row["created"])
        connection.execute(
            "UPDATE calls SET state = 'unknown', owner = ? WHERE key = ?", (mine, call.key)
        )
        return Unknown(row["created"])

    def _own(self, connection: sqlite3.Connection, call: ToolCall) -> sqlite3.Row:
        row = _row(connection, call.key)
        if row is None or row["owner"] != self._owners.mine:
            raise LedgerConflictError(call.key, "it is not this process's")
        return row


def _row(connection: sqlite3.Connection, key: str) -> sqlite3.Row | None:
    found: sqlite3.Row | None = connection.execute(
        "SELECT * FROM calls WHERE key = ?", (key,)
    ).fetchone()
    return found


def dump_result(result: ToolResult) -> str:
    """Return a result as it is kept: bounded, and pure ASCII, whatever text a tool gave."""
    return json.dumps({"content": calls.bounded(result.content), "is_error": result.is_error})


def _load(text: str) -> ToolResult:
    kept = json.loads(text)
    return ToolResult(content=kept["content"], is_error=kept["is_error"])
