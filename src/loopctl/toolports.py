"""The protocols of tool calls: the tools, the policy, the ledger, and what people decide.

They belong to ``ports.py``, and stand apart because only a worker that calls tools needs them.
"""

from collections.abc import Callable, Mapping
from datetime import datetime, timedelta
from typing import Any, Protocol

from loopctl.calls import (
    Effect,
    Outcome,
    Reserved,
    Ruling,
    ToolCall,
    ToolResult,
    ToolSpec,
    Waiting,
)
from loopctl.domain import DecisionDraft, Task
from loopctl.ports import Sandbox

Policy = Callable[[ToolCall], Ruling]
"""Says whether a call may be made; asked before anything else of it is done."""


class Tool(Protocol):
    """Something that a worker may call through the tool proxy, and in no other way."""

    @property
    def effect(self) -> Effect:
        """Where its effects are, by the tool's own metadata; it only reads when ``none``."""
        ...

    def run(self, arguments: Mapping[str, Any], idempotency_key: str) -> ToolResult | Outcome:
        """Do it once, and return what came of it.

        What fails is a result with ``is_error``. ``Outcome.UNKNOWN`` is for a tool that cannot
        say whether its effect happened: out of time, a connection that was lost.

        Args:
            arguments: JSON values.
            idempotency_key: To hand on to a sink that keeps keys; the same for every attempt at
                the same call.
        """
        ...

    def probe(self, arguments: Mapping[str, Any], idempotency_key: str) -> ToolResult | Outcome:
        """Look, without doing anything, whether an earlier attempt had its effect.

        Returns:
            Its result if it had; ``Outcome.ABSENT`` only if it surely had not, and will not have
            any more; ``Outcome.UNKNOWN`` from a tool that cannot tell.
        """
        ...


class Desk(Protocol):
    """What the worker of one session may call: its tools, behind the tool proxy."""

    @property
    def specs(self) -> tuple[ToolSpec, ...]:
        """What a model is told of them, always in the same order."""
        ...

    def rule(self, call: ToolCall) -> Ruling:
        """Return what the policy says of a call; does nothing."""
        ...

    def call(self, call: ToolCall, approval: str | None = None) -> ToolResult | Waiting:
        """Return what the call came to; everything that :meth:`rule` says is heeded here too.

        Raises:
            LedgerConflictError: The call is another session's, or its ordinal was used for
                another call.
            CallInFlightError: Another process is at it.
            SandboxError: The sandbox is gone.
            CancelledError: The run was asked to stop.
        """
        ...


class Desks(Protocol):
    """Opens the desk of a session; what all of them share is put up once."""

    def open(self, session_id: str, task: Task, candidate: str, sandbox: Sandbox) -> Desk:
        """Return the desk at which that session's worker makes its calls in ``sandbox``.

        Raises:
            EnvironmentFaultError: A configured server of tools cannot be had; says which and why.
        """
        ...


class Consent(Protocol):
    """Somebody who may be there to answer while the run goes on."""

    def ask(self, draft: DecisionDraft, timeout_s: float) -> str | None:
        """Return the answer; of an approval, ``domain.APPROVED`` or ``domain.REJECTED``.

        Blocks; any thread may call it.

        Returns:
            ``domain.TIMED_OUT`` when the time is up; ``None`` when nobody is there, or leaves it
            for later: the question stands.

        Raises:
            CancelledError: The run was asked to stop.
        """
        ...


class Ledger(Protocol):
    """What left the sandbox, so that none of it is done twice. Keyed by ``ToolCall.key``."""

    def reserve(
        self, call: ToolCall, *, needs_approval: bool = False, approval: str | None = None
    ) -> Reserved:
        """Write the intent of a call that was never seen; else say what is known of it.

        Args:
            call: Its session is open in the store.
            needs_approval: Write nothing unless ``approval`` is good; it is used up then.
            approval: A token of :meth:`CallDecisions.grant`.

        Returns:
            ``Unknown`` for a call whose process died, or lost sight of it: the call is this
            process's to look into now, and stays unknown until it is finished.

        Raises:
            LedgerConflictError: The key was used with another tool or other arguments.
            CallInFlightError: Another owner that is alive is at it.
        """
        ...

    def finish(self, call: ToolCall, result: ToolResult | None) -> None:
        """Record the result of a call that is this process's; ``None`` when nobody knows it.

        Raises:
            LedgerConflictError: The call is another's, or has another result.
        """
        ...

    def abandon(self, call: ToolCall) -> None:
        """Forget a call of this process's that surely did not happen; it may be made again.

        Raises:
            LedgerConflictError: The call is another's, or has its result.
        """
        ...

    def purge(self, now: datetime) -> int:
        """Drop what has expired and can matter no more; return how many calls that were.

        A call without a result stays as long as its run can be resumed, however old it is; so
        does one whose step has no checkpoint yet.
        """
        ...


class CallHooks(Protocol):
    """Programs of the user's that are asked about every call, for the calls of one sandbox."""

    def before(self, call: ToolCall) -> Ruling:
        """Return what they say of a call that is about to be made; what fails denies it.

        Raises:
            CancelledError: The run was asked to stop.
        """
        ...

    def after(self, call: ToolCall, result: ToolResult) -> None:
        """Tell them what a call came to; nothing that they do changes that.

        Raises:
            CancelledError: The run was asked to stop.
        """
        ...


class PinStore(Protocol):
    """What was seen once and has to stay as it was, over runs and resumes.

    A scope is a server of tools, or a run whose hooks' files are frozen.
    """

    def pinned(self, scope: str) -> Mapping[str, str]:
        """Return what is pinned in a scope, by name."""
        ...

    def pin(self, scope: str, contents: Mapping[str, str]) -> None:
        """Pin contents under their names, all or none, in the place of what was pinned there."""
        ...

    def is_let(self, call_key: str, mark: str) -> bool:
        """Return whether a person has approved that call, for a reason that begins with ``mark``."""
        ...


class CallDecisions(Protocol):
    """What people have decided about calls, carried over into the ledger."""

    def grant(self, decision_id: str, call: ToolCall, lifetime: timedelta) -> str:
        """Return the token that lets exactly this call happen, once, and until it expires.

        The same token for the same decision: a decision never lets two calls happen.

        Raises:
            LedgerConflictError: The decision's token was made for another call.
        """
        ...

    def settle(self, decision_id: str, key: str, result: ToolResult | None) -> bool:
        """Apply an answer about an unknown outcome, once for each decision.

        Args:
            decision_id: The answered decision; applied before, it changes nothing any more.
            key: Of the call.
            result: What is recorded as its result; ``None`` lets it be made again.

        Returns:
            Whether the ledger was changed.
        """
        ...
