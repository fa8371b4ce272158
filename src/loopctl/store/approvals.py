"""Tokens that let one call happen: granted for a decision, used up with the call's intent."""

import sqlite3
from typing import Final

from loopctl.calls import ToolCall

_BINDING: Final = ("run_id", "session_id", "iteration", "ordinal", "tool", "args_sha256")


def binding(connection: sqlite3.Connection, call: ToolCall) -> dict[str, object]:
    """Return what a token is bound to, by column: the run and all of the call."""
    row = connection.execute(
        "SELECT run_id FROM sessions WHERE id = ?", (call.session_id,)
    ).fetchone()
    return {
        "run_id": row["run_id"] if row is not None else None,
        "session_id": call.session_id,
        "iteration": call.iteration,
        "ordinal": call.ordinal,
        "tool": call.tool,
        "args_sha256": call.arguments_hash,
    }


def is_bound(connection: sqlite3.Connection, row: sqlite3.Row, call: ToolCall) -> bool:
    """Say whether the token of ``row`` was granted for exactly this call."""
    bound = binding(connection, call)
    return all(row[name] == bound[name] for name in _BINDING)


def redeem(connection: sqlite3.Connection, token: str | None, call: ToolCall, now: str) -> str:
    """Use a token up, inside the transaction that writes the call's intent.

    Returns:
        Empty when the call may happen; else why not, one line, and the token is as it was.
    """
    if token is None:
        return "a person has to approve it"
    row = connection.execute("SELECT * FROM approvals WHERE token = ?", (token,)).fetchone()
    if row is None:
        return "its approval is not one of ours"
    if not is_bound(connection, row, call):
        return "its approval is for another call"
    if row["used"] is not None:
        return f"its approval was used on {row['used']}"
    if row["expires"] <= now:
        return f"its approval expired on {row['expires']}"
    connection.execute("UPDATE approvals SET used = ? WHERE token = ?", (now, token))
    return ""
