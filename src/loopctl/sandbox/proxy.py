"""The tool proxy: the one way out of the sandbox.

It asks the policy and the user's hooks, remembers in the ledger, and only then lets a tool run. What happened beyond
the sandbox happens at most once, whatever was killed, repeated or sent twice:

intent → (where an intent is found: probe) → effect → done

Only effects outside are kept in the ledger, and calls that a person had to approve, since consent
is to one execution. Reading may be repeated, and what was done inside the worktree is undone when
a step is taken again and so has to be done again.
"""

import contextlib
import threading
from collections.abc import Iterator, Mapping
from dataclasses import replace
from typing import Any, Literal, Protocol

from loopctl.calls import (
    Action,
    ApprovalRequired,
    Effect,
    Outcome,
    OutcomeUnknown,
    Recorded,
    Ruling,
    ToolCall,
    ToolResult,
    Unapproved,
    Unknown,
    Waiting,
    bounded,
)
from loopctl.clock import Clock
from loopctl.errors import LedgerConflictError
from loopctl.events import CallFinished, CallReplayed
from loopctl.failpoints import reach
from loopctl.ports import Emit
from loopctl.sandbox.hooks.verdict import strictest
from loopctl.toolports import CallHooks, Ledger, Policy, Tool


def allow_all(call: ToolCall) -> Ruling:
    """Return that any call may be made: the policy where there is none."""
    del call
    return Ruling()


class Session(Protocol):
    """Whose calls are made; a ``SessionRecord`` is one."""

    @property
    def id(self) -> str:
        """Of the session."""
        ...

    @property
    def task(self) -> str:
        """Which it works on."""
        ...

    @property
    def candidate(self) -> str:
        """The option's name, or ``main``."""
        ...


class ToolProxy:
    """Makes the tool calls of one session.

    Args:
        session: Whose calls these are; another's are refused.
        tools: By name; there are no others.
        policy: Asked before the ledger is.
        hooks: Asked after the policy about what it does not deny, whatever it says; they can make
            its ruling stricter, and never milder. Told of every result that is not a replayed one.
    """

    def __init__(
        self,
        session: Session,
        tools: Mapping[str, Tool],
        ledger: Ledger,
        *,
        clock: Clock,
        emit: Emit,
        policy: Policy = allow_all,
        hooks: CallHooks | None = None,
    ) -> None:
        self._session = session
        self._tools = dict(tools)
        self._ledger = ledger
        self._clock = clock
        self._emit = emit
        self._policy = policy
        self._hooks = hooks
        self._turns = _Turns()

    def call(self, call: ToolCall, approval: str | None = None) -> ToolResult | Waiting:
        """Return what the call came to: made now, or recorded when it was made before.

        Args:
            call: To be made.
            approval: The token that a person's approval has given, where there is one.

        Returns:
            ``ApprovalRequired`` when nothing was run because a person has to approve it first;
            ``OutcomeUnknown`` when it was begun before and may have happened. A call that cannot
            be made at all (no such tool, arguments that are no JSON, denied) is an error result,
            and the ledger is not touched.

        Raises:
            LedgerConflictError: The call is another session's, or its ordinal was used for
                another call.
            CallInFlightError: Another process is at it.
        """
        if call.session_id != self._session.id:
            raise LedgerConflictError(call.key, f"it belongs to session {call.session_id}")
        tool = self._tools.get(call.tool)
        if tool is None:
            known = ", ".join(sorted(self._tools)) or "none"
            return ToolResult(f"there is no tool {call.tool}; there are: {known}", is_error=True)
        try:
            _ = call.arguments_hash
        except ValueError as exc:
            return ToolResult(f"the arguments of {call.tool} are {exc}", is_error=True)
        ruling = self._ruled(call)
        if ruling.action is Action.DENY:
            return ToolResult(f"{call.tool} was denied: {ruling.reason}", is_error=True)
        came = self._made(call, tool, ruling, approval)
        if self._hooks is not None and isinstance(came, ToolResult) and not came.replayed:
            self._hooks.after(call, came)
        return came

    def _ruled(self, call: ToolCall) -> Ruling:
        ruling = self._policy(call)
        if self._hooks is None or ruling.action is Action.DENY:
            return ruling
        return strictest(ruling, self._hooks.before(call))

    def _made(
        self, call: ToolCall, tool: Tool, ruling: Ruling, approval: str | None
    ) -> ToolResult | Waiting:
        if ruling.action is Action.ALLOW and tool.effect is not Effect.OUTSIDE:
            came = tool.run(call.arguments, call.key)
            if isinstance(came, Outcome):
                return _nothing(call, came)
            return replace(came, content=bounded(came.content))
        with self._turns.of(call.key):
            return self._once(call, tool, ruling, approval)

    def _once(
        self, call: ToolCall, tool: Tool, ruling: Ruling, approval: str | None
    ) -> ToolResult | Waiting:
        needs_approval = ruling.action is Action.APPROVE
        found = self._ledger.reserve(call, needs_approval=needs_approval, approval=approval)
        match found:
            case Unapproved(reason):
                given = reason if approval is not None else ruling.reason
                return ApprovalRequired(call, given or reason)
            case Recorded(result):
                return self._replayed(call, result, "ledger")
            case Unknown(since):
                seen = tool.probe(call.arguments, call.key)
                if seen is Outcome.UNKNOWN:
                    return OutcomeUnknown(call, since)
                if isinstance(seen, ToolResult):
                    result = self._recorded(call, seen)
                    return self._replayed(call, result, "probe")
                # It surely did not happen, so the approval that it had still stands.
                self._ledger.abandon(call)
                self._ledger.reserve(call)
            case _:
                pass
        return self._run(call, tool)

    def _run(self, call: ToolCall, tool: Tool) -> ToolResult | Waiting:
        """Have the effect; its intent is written."""
        began = self._clock.monotonic()
        try:
            reach("proxy.before_effect")
            came = tool.run(call.arguments, call.key)
            reach("proxy.after_effect")
            if came is Outcome.UNKNOWN:
                came = tool.probe(call.arguments, call.key)
        except BaseException:
            self._ledger.finish(call, None)
            raise
        if isinstance(came, ToolResult):
            result = self._recorded(call, came)
            ms = int((self._clock.monotonic() - began) * 1000)
            self._emit(CallFinished(**self._fields(call), is_error=result.is_error, ms=ms))
            return result
        if came is Outcome.ABSENT:
            self._ledger.abandon(call)
            return _nothing(call, came)
        self._ledger.finish(call, None)
        found = self._ledger.reserve(call)
        return OutcomeUnknown(call, found.since if isinstance(found, Unknown) else "")

    def _recorded(self, call: ToolCall, result: ToolResult) -> ToolResult:
        """Return the result as it is kept, so that the first answer and a later one are the same."""
        kept = ToolResult(bounded(result.content), result.is_error)
        self._ledger.finish(call, kept)
        return kept

    def _replayed(
        self, call: ToolCall, result: ToolResult, source: Literal["ledger", "probe"]
    ) -> ToolResult:
        self._emit(CallReplayed(**self._fields(call), source=source))
        return replace(result, replayed=True)

    def _fields(self, call: ToolCall) -> dict[str, Any]:
        return {
            "task": self._session.task,
            "candidate": self._session.candidate,
            "iteration": call.iteration,
            "ordinal": call.ordinal,
            "tool": call.tool,
            "key": call.key,
        }


def _nothing(call: ToolCall, came: Outcome) -> ToolResult:
    what = "did nothing" if came is Outcome.ABSENT else "gave no result"
    return ToolResult(f"{call.tool} {what}; it may be called again", is_error=True)


class _Turns:
    """Lets the threads that are at the same call go one after the other."""

    def __init__(self) -> None:
        self._guard = threading.Lock()
        self._locks: dict[str, tuple[threading.Lock, int]] = {}

    @contextlib.contextmanager
    def of(self, key: str) -> Iterator[None]:
        with self._guard:
            lock, waiting = self._locks.get(key, (threading.Lock(), 0))
            self._locks[key] = (lock, waiting + 1)
        try:
            with lock:
                yield
        finally:
            with self._guard:
                lock, waiting = self._locks.pop(key)
                if waiting > 1:
                    self._locks[key] = (lock, waiting - 1)
