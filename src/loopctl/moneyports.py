"""The protocol of money: what a model call may cost is put aside before it, and settled after it.

One ledger for a run, its tasks, and all their candidates and retries.
"""

from dataclasses import dataclass, field
from enum import StrEnum
from typing import Protocol

from loopctl.domain import Limits, Usage


class Cap(StrEnum):
    """Which cap a call would pass."""

    TASK_TOKENS = "task_tokens"
    TASK_USD = "task_usd"
    RUN_TOKENS = "run_tokens"
    RUN_USD = "run_usd"

    @property
    def is_of_run(self) -> bool:
        """The whole run ends on it, not only the task."""
        return self in {Cap.RUN_TOKENS, Cap.RUN_USD}


@dataclass(frozen=True, slots=True)
class Claim:
    """What one model call can cost at worst.

    Attributes:
        task: The task's id, or ``@goal`` for what belongs to the run as a whole.
        purpose: ``step``, ``plan``, ``summary``, ``judge``, ...; for the report.
        tokens: Counted prompt tokens and the output limit.
        usd: At the model's price; ``None`` where nobody knows it, which is refused where the user
            has set a cap in dollars.
        caps: Of the task, with what its answers have raised.
    """

    run_id: str
    task: str
    purpose: str
    model: str
    tokens: int
    usd: float | None
    caps: Limits = field(default_factory=Limits)


@dataclass(frozen=True, slots=True)
class Reserved:
    """The money is put aside, under this id, until it is settled."""

    id: int


@dataclass(frozen=True, slots=True)
class Refused:
    """The call must not be made.

    Attributes:
        cap: Which one it would pass; ``None`` where the model's price is unknown.
        reason: What, which and what to do; one line.
        needed: The smallest such cap under which the call would fit, in tokens or US dollars; 0
            where nobody knows.
    """

    cap: Cap | None
    reason: str
    needed: float = 0.0


class Purse(Protocol):
    """The run's money. Threads and candidates share it; a reservation survives the process.

    What is reserved and never settled, since its process died, counts as spent.
    """

    def reserve(self, claim: Claim) -> Reserved | Refused:
        """Put the worst case aside, or say which cap it would pass; nothing was written then."""
        ...

    def settle(self, reservation: int, usage: Usage) -> None:
        """Replace a reservation by what the call has cost; the second time changes nothing."""
        ...

    def spent(self, run_id: str, task: str | None = None) -> Usage:
        """Return what was settled, and what is still put aside as if it were; of one task or all.

        What is put aside counts as prompt tokens.
        """
        ...
