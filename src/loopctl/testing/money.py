"""Doubles for the ports of model steps: a purse and kept replies in memory, and who tends a past."""

import threading
from collections.abc import Callable
from dataclasses import dataclass, field

from loopctl.contextports import Memory
from loopctl.domain import Limits, Usage
from loopctl.errors import CheckpointConflictError
from loopctl.moneyports import Claim, Refused, Reserved
from loopctl.past import Past
from loopctl.store.caps import RunCaps, Spent, micro_usd, refusal

_NO_CAPS = Limits()


@dataclass
class MemoryPurse:
    """The port ``Purse``: by the rule of the real one, forgotten with the process.

    Attributes:
        claims: What was asked for, refused or not, in order.
        costs: By reservation: the claim, and what it costs so far.
    """

    caps: RunCaps = field(default_factory=RunCaps)
    claims: list[Claim] = field(default_factory=list)
    costs: dict[int, tuple[Claim, Usage]] = field(default_factory=dict)
    settled: set[int] = field(default_factory=set)
    _lock: threading.RLock = field(default_factory=threading.RLock, repr=False)

    def reserve(self, claim: Claim) -> Reserved | Refused:
        """Put the worst case aside, or say which cap it would pass."""
        with self._lock:
            self.claims.append(claim)
            task, run = self._sum(claim.run_id, claim.task), self._sum(claim.run_id)
            refused = refusal(claim, self.caps, task, run)
            if refused is not None:
                return refused
            number = len(self.costs) + 1
            self.costs[number] = (claim, Usage(claim.tokens, 0, claim.usd or 0.0))
            return Reserved(number)

    def settle(self, reservation: int, usage: Usage) -> None:
        """Replace a reservation by what the call has cost, once."""
        with self._lock:
            if reservation not in self.settled and reservation in self.costs:
                self.settled.add(reservation)
                self.costs[reservation] = (self.costs[reservation][0], usage)

    def spent(self, run_id: str, task: str | None = None) -> Usage:
        """Return the sum of one task, or of all."""
        with self._lock:
            costs = [
                usage
                for claim, usage in self.costs.values()
                if claim.run_id == run_id and task in {None, claim.task}
            ]
        return sum(costs, Usage())

    def _sum(self, run_id: str, task: str | None = None) -> Spent:
        usage = self.spent(run_id, task)
        return Spent(usage.prompt_tokens + usage.completion_tokens, micro_usd(usage.usd))


@dataclass
class MemoryReplies:
    """The port ``ReplyStore``; nothing goes by itself: call :meth:`drop` where a step is saved."""

    kept: dict[tuple[str, int, int], str] = field(default_factory=dict)

    def keep(self, session_id: str, iteration: int, number: int, reply: str) -> None:
        """Keep a reply; another one under the same number is refused."""
        if self.kept.setdefault((session_id, iteration, number), reply) != reply:
            raise CheckpointConflictError(session_id, iteration)

    def replies(self, session_id: str, iteration: int, first: int = 0) -> tuple[str, ...]:
        """Return what was kept from a number on, up to the first gap."""
        found: list[str] = []
        while (reply := self.kept.get((session_id, iteration, first + len(found)))) is not None:
            found.append(reply)
        return tuple(found)

    def drop(self, session_id: str, iteration: int) -> None:
        """Forget the replies of a step that is at its end."""
        for key in [key for key in self.kept if key[:2] == (session_id, iteration)]:
            del self.kept[key]


@dataclass
class ScriptedCompactor:
    """The port ``Compactor``: does to each past what it was told, and remembers who asked."""

    change: Callable[[Past], Past] = lambda past: past
    tended: list[tuple[str, str, Past]] = field(default_factory=list)
    caps: list[Limits] = field(default_factory=list)
    is_closed: bool = False

    def tend(self, session_id: str, task: str, past: Past, caps: Limits = _NO_CAPS) -> Past:
        """Return what ``change`` makes of the past."""
        self.tended.append((session_id, task, past))
        self.caps.append(caps)
        return self.change(past)

    def close(self) -> None:
        """Remember that nobody will ask any more."""
        self.is_closed = True


@dataclass
class ScriptedRecall:
    """The port ``Recall``: gives the same memories to everybody, and remembers the queries."""

    memories: tuple[Memory, ...] = ()
    queries: list[str] = field(default_factory=list)

    def recall(self, query: str, limit: int) -> tuple[Memory, ...]:
        """Return the first ``limit`` memories."""
        self.queries.append(query)
        return self.memories[:limit]
