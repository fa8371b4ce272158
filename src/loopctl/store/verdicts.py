"""The cache of verdicts on trees: a base is judged once, and a landed tree not again."""

from functools import cache
from typing import Final

from pydantic import TypeAdapter

from loopctl.store.database import Database
from loopctl.verdict import Blame, CheckResult

_NOT_KEPT: Final = frozenset({Blame.ENVIRONMENT, Blame.FLAKY})


@cache
def _results() -> TypeAdapter[CheckResult]:
    return TypeAdapter(CheckResult)


class SqliteVerdicts:
    """The port ``VerdictCache`` over SQLite."""

    def __init__(self, database: Database) -> None:
        self._database = database

    def get(self, tree: str, check: str, command: str) -> CheckResult | None:
        """Return what was found before."""
        rows = self._database.rows(
            "SELECT result FROM verdicts WHERE tree = ? AND check_name = ? AND command = ?",
            (tree, check, command),
        )
        return _results().validate_json(rows[0]["result"]) if rows else None

    def put(self, tree: str, check: str, command: str, result: CheckResult) -> None:
        """Remember a verdict; one whose blame is ``environment`` or ``flaky`` is not kept."""
        if result.blame in _NOT_KEPT:
            return
        with self._database.write() as connection:
            connection.execute(
                "INSERT OR REPLACE INTO verdicts (tree, check_name, command, result)"
                " VALUES (?, ?, ?, ?)",
                (
                    tree,
                    check,
                    command,
                    self._database.without_keys(_results().dump_json(result).decode()),
                ),
            )
