"""A till that keeps what was reserved and settled, and refuses when told to."""

import threading
from dataclasses import dataclass, field

from loopctl.domain import Usage
from loopctl.moneyports import Claim, Refused, Reserved


@dataclass
class MemoryTill:
    """The port ``Till``.

    Attributes:
        refused: What comes back once ``granted`` claims were granted; ``None``: all are.
        claims: Those that were granted; a reservation's id is its place, from 1.
        settled: Usage by reservation; the first one counts, as in the purse.
    """

    refused: Refused | None = None
    granted: int = 0
    claims: list[Claim] = field(default_factory=list)
    settled: dict[int, Usage] = field(default_factory=dict)
    _lock: threading.Lock = field(default_factory=threading.Lock, repr=False)

    def reserve(self, claim: Claim) -> Reserved | Refused:
        """Grant the claim, or refuse it."""
        with self._lock:
            if self.refused is not None and len(self.claims) >= self.granted:
                return self.refused
            self.claims.append(claim)
            return Reserved(len(self.claims))

    def settle(self, reservation: int, usage: Usage) -> None:
        """Keep what the call has cost."""
        with self._lock:
            self.settled.setdefault(reservation, usage)

    @property
    def spent(self) -> Usage:
        """All that was settled."""
        return sum(self.settled.values(), Usage())

    @property
    def open(self) -> int:
        """How many reservations were not settled."""
        return len(self.claims) - len(self.settled)
