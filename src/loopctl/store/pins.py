"""Pins in the database: what was seen once, so that a change of it is noticed in any later run."""

from collections.abc import Mapping

from loopctl.domain import APPROVED, DecisionKind
from loopctl.store.database import Database


class SqlitePins:
    """The port ``PinStore`` over SQLite."""

    def __init__(self, database: Database) -> None:
        self._database = database

    def pinned(self, scope: str) -> Mapping[str, str]:
        """Return what is pinned in a scope, by name."""
        rows = self._database.rows(
            "SELECT name, content FROM pins WHERE scope = ? ORDER BY name", (scope,)
        )
        return {row["name"]: row["content"] for row in rows}

    def pin(self, scope: str, contents: Mapping[str, str]) -> None:
        """Pin contents under their names, all or none, in the place of what was pinned there."""
        with self._database.write() as connection:
            connection.executemany(
                "INSERT INTO pins (scope, name, content) VALUES (?, ?, ?)"
                " ON CONFLICT (scope, name) DO UPDATE SET content = excluded.content",
                [(scope, name, content) for name, content in contents.items()],
            )

    def is_let(self, call_key: str, mark: str) -> bool:
        """Return whether a person has approved that call, for a reason that begins with ``mark``."""
        rows = self._database.rows(
            "SELECT reason FROM decisions WHERE call_key = ? AND kind = ? AND answer = ?",
            (call_key, DecisionKind.APPROVAL, APPROVED),
        )
        return any(row["reason"].startswith(mark) for row in rows)
