"""What a step in the worker's process may ask of the engine; it waits for each answer.

The engine's side is the tool proxy, the money's ledger and the store: the worker's process has
none of them, no files, and nothing that outlives the step.
"""

from typing import Protocol

from loopctl.calls import Ruling, ToolCall, ToolResult, Waiting
from loopctl.domain import Usage
from loopctl.moneyports import Claim, Refused, Reserved


class Till(Protocol):
    """Where money is put aside for a model call and settled after it."""

    def reserve(self, claim: Claim) -> Reserved | Refused:
        """Put the worst case aside, or say why the call must not be made."""
        ...

    def settle(self, reservation: int, usage: Usage) -> None:
        """Replace a reservation by what the call has cost."""
        ...


class Door(Till, Protocol):
    """The one way from a step to the engine.

    Every method raises ``CancelledError`` where the run was asked to stop.
    """

    def rule(self, call: ToolCall) -> Ruling:
        """Return what the policy says of a call; does nothing."""
        ...

    def call(self, call: ToolCall, approval: str | None = None) -> ToolResult | Waiting:
        """Return what a call came to, or why a person has to decide first."""
        ...

    def keep_reply(self, number: int, reply: str) -> str:
        """Keep a reply, JSON, under its number in the iteration, before any of its calls is made.

        A reply that was given again is kept again, the same under the same number: that changes
        nothing, and says how many of the iteration's replies belong to this step.

        Returns:
            The reply as it will be given again, keys taken out: what the step goes on with.
        """
        ...
