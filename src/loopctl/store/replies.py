"""What models have answered within a step that is not at its end yet, in the database."""

from loopctl.errors import CheckpointConflictError
from loopctl.failpoints import reach
from loopctl.plan import check_iteration
from loopctl.store.database import Database
from loopctl.store.sessions import has_ended


class SqliteReplies:
    """The port ``ReplyStore`` over SQLite; ``SqliteSessions.save_checkpoint`` drops the rows."""

    def __init__(self, database: Database) -> None:
        self._database = database

    def keep(self, session_id: str, iteration: int, number: int, reply: str) -> None:
        """Keep a reply, JSON, before any of its calls is made; the same again is a no-op.

        Raises:
            CheckpointConflictError: Another reply is kept under that number, or the step has come
                to its end already: two owners.
            ValueError: The iteration is not below ``plan.ITERATION_LIMIT``, or the number is
                negative.
            StoreError: There is no such session.
        """
        check_iteration(iteration)
        if number < 0:
            raise ValueError(f"reply {number} of a step is out of range")
        blob = self._database.without_keys(reply).encode("utf-8", "surrogatepass")
        reach("replies.before_keep")
        with self._database.write() as connection:
            if has_ended(connection, session_id, iteration):
                raise CheckpointConflictError(session_id, iteration)
            connection.execute(
                "INSERT INTO replies (session_id, iteration, number, reply) VALUES (?, ?, ?, ?)"
                " ON CONFLICT DO NOTHING",
                (session_id, iteration, number, blob),
            )
            (found,) = connection.execute(
                "SELECT reply FROM replies WHERE session_id = ? AND iteration = ? AND number = ?",
                (session_id, iteration, number),
            ).fetchone()
            if found != blob:
                raise CheckpointConflictError(session_id, iteration)
        reach("replies.after_keep")

    def replies(self, session_id: str, iteration: int, first: int = 0) -> tuple[str, ...]:
        """Return what was kept from the number ``first`` on, in order, up to the first gap."""
        rows = self._database.rows(
            "SELECT number, reply FROM replies"
            " WHERE session_id = ? AND iteration = ? AND number >= ? ORDER BY number",
            (session_id, iteration, first),
        )
        return tuple(
            bytes(row["reply"]).decode("utf-8", "surrogatepass")
            for expected, row in enumerate(rows, first)
            if row["number"] == expected
        )
