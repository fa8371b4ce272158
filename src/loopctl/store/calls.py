"""What people have decided about calls, carried over into the ledger."""

import secrets
from datetime import timedelta

from loopctl.calls import ToolCall, ToolResult
from loopctl.clock import Clock, stamp
from loopctl.errors import LedgerConflictError
from loopctl.store import approvals
from loopctl.store.database import Database
from loopctl.store.ledger import dump_result


class SqliteCallDecisions:
    """The port ``CallDecisions`` over SQLite."""

    def __init__(self, database: Database, clock: Clock) -> None:
        self._database = database
        self._clock = clock

    def grant(self, decision_id: str, call: ToolCall, lifetime: timedelta) -> str:
        """Return the token that lets exactly this call happen, once, and until it expires.

        The same token for the same decision: a decision never lets two calls happen.

        Raises:
            LedgerConflictError: The decision's token was made for another call.
        """
        expires = stamp(self._clock.now() + lifetime)
        with self._database.write() as connection:
            row = connection.execute(
                "SELECT * FROM approvals WHERE decision_id = ?", (decision_id,)
            ).fetchone()
            if row is not None:
                if not approvals.is_bound(connection, row, call):
                    raise LedgerConflictError(call.key, f"{decision_id} approved another call")
                return str(row["token"])
            bound = approvals.binding(connection, call)
            token = secrets.token_hex(32)
            connection.execute(
                "INSERT INTO approvals (token, decision_id, expires, run_id, session_id,"
                " iteration, ordinal, tool, args_sha256)"
                " VALUES (:token, :decision_id, :expires, :run_id, :session_id, :iteration,"
                " :ordinal, :tool, :args_sha256)",
                {"token": token, "decision_id": decision_id, "expires": expires, **bound},
            )
        return token

    def settle(self, decision_id: str, key: str, result: ToolResult | None) -> bool:
        """Apply an answer about an unknown outcome, once for each decision.

        Args:
            decision_id: The answered decision; applied before, it changes nothing any more.
            key: Of the call.
            result: What is recorded as its result; ``None`` lets it be made again.

        Returns:
            Whether the ledger was changed.
        """
        with self._database.write() as connection:
            is_new = connection.execute(
                "UPDATE decisions SET is_applied = 1 WHERE id = ? AND is_applied = 0",
                (decision_id,),
            ).rowcount
            if not is_new:
                return False
            if result is None:
                sql, args = "DELETE FROM calls WHERE key = ? AND state = 'unknown'", (key,)
                return connection.execute(sql, args).rowcount == 1
            changed = connection.execute(
                "UPDATE calls SET state = 'done', result = ? WHERE key = ? AND state = 'unknown'",
                (dump_result(result), key),
            ).rowcount
        return changed == 1
