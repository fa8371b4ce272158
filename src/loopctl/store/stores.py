"""The stores of one checkout, over one connection."""

from contextlib import AbstractContextManager
from pathlib import Path
from types import TracebackType
from typing import Self

from loopctl.clock import Clock, SystemClock
from loopctl.redaction import Redactor
from loopctl.store.calls import SqliteCallDecisions
from loopctl.store.caps import RunCaps
from loopctl.store.database import FILE_NAME, open_database
from loopctl.store.decisions import SqliteDecisions
from loopctl.store.ledger import SqliteLedger
from loopctl.store.owners import FOLDER, Owners
from loopctl.store.pins import SqlitePins
from loopctl.store.purse import SqlitePurse
from loopctl.store.replies import SqliteReplies
from loopctl.store.runs import SqliteRuns
from loopctl.store.sessions import SqliteSessions
from loopctl.store.verdicts import SqliteVerdicts


class Stores(AbstractContextManager["Stores"]):
    """The stores of one checkout, over one connection."""

    def __init__(
        self, local: Path, clock: Clock | None = None, redact: Redactor | None = None
    ) -> None:
        clock = clock or SystemClock()
        self._database = open_database(local / FILE_NAME, is_checked=True, redact=redact)
        self.runs = SqliteRuns(self._database)
        self.sessions = SqliteSessions(self._database)
        self.decisions = SqliteDecisions(self._database)
        self.replies = SqliteReplies(self._database)
        self.pins = SqlitePins(self._database)
        self.verdicts = SqliteVerdicts(self._database)
        self._owners = Owners(local / FOLDER)
        self.ledger = SqliteLedger(self._database, clock, self._owners)
        self.call_decisions = SqliteCallDecisions(self._database, clock)

    def purse(self, caps: RunCaps) -> SqlitePurse:
        """Return the money of a run that may spend so much."""
        return SqlitePurse(self._database, caps)

    def __enter__(self) -> Self:
        """Return the stores."""
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        """Close the connection; calls that this process has begun are known to be left then."""
        self._owners.close()
        self._database.close()
