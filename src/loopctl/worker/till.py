"""The engine's side of the money of one talk: who pays is known here, and not asked of the child."""

from dataclasses import replace

from loopctl.domain import Limits, Usage
from loopctl.errors import EnvironmentFaultError
from loopctl.moneyports import Purse, Refused, Reserved
from loopctl.worker.protocol import Done, Money, Reserve, Settle


class PayersTill:
    """Serves what the child asks of money, on one payer's account.

    Args:
        caps: Of the task, with what its answers have raised.
    """

    def __init__(self, purse: Purse, run_id: str, task: str, caps: Limits) -> None:
        self._purse = purse
        self._run_id = run_id
        self._task = task
        self._caps = caps
        self._reserved: set[int] = set()
        self._spent: dict[int, Usage] = {}

    @property
    def spent(self) -> Usage:
        """What was settled."""
        return sum(self._spent.values(), Usage())

    def serve(self, ask: Money) -> Reserved | Refused | Done:
        """Return the answer.

        Raises:
            EnvironmentFaultError: The child settles what was not reserved here.
        """
        match ask:
            case Reserve(claim):
                owed = replace(claim, run_id=self._run_id, task=self._task, caps=self._caps)
                answer = self._purse.reserve(owed)
                if isinstance(answer, Reserved):
                    self._reserved.add(answer.id)
                return answer
            case Settle(reservation, usage):
                if reservation not in self._reserved:
                    raise EnvironmentFaultError(
                        f"the model worker's process settled reservation {reservation}, which it "
                        "has not made; that is a fault of loop"
                    )
                self._purse.settle(reservation, usage)
                self._spent.setdefault(reservation, usage)
                return Done()
