"""The money of one run in the database: reserved before a call, settled after it.

A reservation is read, compared and written in one transaction, so that threads, candidates and
processes never pass a cap together. One that was never settled counts as it stands: its process
died, and nobody knows what the call has cost.
"""

import sqlite3

from loopctl.domain import Usage
from loopctl.failpoints import reach
from loopctl.moneyports import Claim, Refused, Reserved
from loopctl.store.caps import MICRO, RunCaps, Spent, micro_usd, refusal
from loopctl.store.database import Database


class SqlitePurse:
    """The port ``Purse`` over SQLite.

    Args:
        database: Shared with all other stores.
        caps: Of the run; those of a task come with each claim.
    """

    def __init__(self, database: Database, caps: RunCaps) -> None:
        self._database = database
        self._caps = caps

    def reserve(self, claim: Claim) -> Reserved | Refused:
        """Put the worst case aside, or say which cap it would pass; nothing was written then.

        Raises:
            ValueError: The claim's tokens or dollars are negative, or the dollars not finite.
            StoreError: There is no such run.
        """
        reach("purse.before_reserve")
        with self._database.write() as connection:
            task = _sum(connection, claim.run_id, claim.task)
            refused = refusal(claim, self._caps, task, _sum(connection, claim.run_id))
            if refused is not None:
                return refused
            made = connection.execute(
                "INSERT INTO spendings (run_id, task, purpose, model, prompt_tokens, micro_usd)"
                " VALUES (?, ?, ?, ?, ?, ?) RETURNING id",
                (
                    claim.run_id,
                    claim.task,
                    claim.purpose,
                    claim.model,
                    claim.tokens,
                    micro_usd(claim.usd or 0.0),
                ),
            ).fetchone()
        reach("purse.after_reserve")
        return Reserved(int(made["id"]))

    def settle(self, reservation: int, usage: Usage) -> None:
        """Replace a reservation by what the call has cost; the second time changes nothing.

        Raises:
            ValueError: The dollars are negative or not finite.
        """
        cost = micro_usd(usage.usd)
        reach("purse.before_settle")
        with self._database.write() as connection:
            connection.execute(
                "UPDATE spendings SET is_settled = 1, prompt_tokens = ?, completion_tokens = ?,"
                " micro_usd = ? WHERE id = ? AND is_settled = 0",
                (usage.prompt_tokens, usage.completion_tokens, cost, reservation),
            )
        reach("purse.after_settle")

    def spent(self, run_id: str, task: str | None = None) -> Usage:
        """Return what was settled, and what is still put aside as if it were; of one task or all.

        What is put aside counts as prompt tokens.
        """
        (row,) = self._database.rows(
            "SELECT coalesce(sum(prompt_tokens), 0) AS prompt,"
            " coalesce(sum(completion_tokens), 0) AS completion,"
            " coalesce(sum(micro_usd), 0) AS usd FROM spendings"
            " WHERE run_id = ?1 AND (?2 IS NULL OR task = ?2)",
            (run_id, task),
        )
        return Usage(row["prompt"], row["completion"], row["usd"] / MICRO)


def _sum(connection: sqlite3.Connection, run_id: str, task: str | None = None) -> Spent:
    row = connection.execute(
        "SELECT coalesce(sum(prompt_tokens + completion_tokens), 0) AS tokens,"
        " coalesce(sum(micro_usd), 0) AS usd FROM spendings"
        " WHERE run_id = ?1 AND (?2 IS NULL OR task = ?2)",
        (run_id, task),
    ).fetchone()
    return Spent(row["tokens"], row["usd"])
