"""What the engine's side knows of a step while the child does it: enough to do it again elsewhere.

The child may die in the middle. The next one gets the replies that were kept and begins at the
step's beginning; it therefore makes the same calls under the same ordinals. Each of them is
answered from here, and not made again; and of its events those are passed over that were told
before, until it asks for something new: the replay is over then.
"""

import json
from collections.abc import Hashable
from dataclasses import dataclass, replace
from typing import Final

from loopctl.calls import ToolCall, ToolResult, Waiting, bounded
from loopctl.domain import Usage
from loopctl.errors import LedgerConflictError
from loopctl.steps import (
    InterruptRequired,
    StepEvent,
    StepRequest,
    ToolCallFinished,
    ToolCallStarted,
    UsageReported,
    WorkerProgress,
)
from loopctl.storeports import ReplyStore
from loopctl.toolports import Desk
from loopctl.worker.protocol import (
    Answer,
    Ask,
    AskCall,
    AskRule,
    KeepReply,
    Kept,
    Reserve,
    Settle,
)
from loopctl.worker.till import PayersTill

_NO_USD: Final = 1e-9
"""Less than that is what adding prices leaves over."""


@dataclass(frozen=True, slots=True)
class _Made:
    """A call that was made, and what it came to."""

    call: ToolCall
    approval: str | None
    came: ToolResult | Waiting

    def answers(self, approval: str | None) -> bool:
        """It need not be made again; one that waits is, once it is approved."""
        return isinstance(self.came, ToolResult) or approval == self.approval


class HostedStep:
    """One step: serves its asks, and says which of its events are new."""

    def __init__(
        self, request: StepRequest, desk: Desk, till: PayersTill, replies: ReplyStore
    ) -> None:
        self._request = request
        self._desk = desk
        self._till = till
        self._replies = replies
        self._made: dict[int, _Made] = {}
        self._kept: set[int] = set()
        self._told: list[Hashable] = []
        self._untold: list[Hashable] = []
        self._progress: WorkerProgress | None = None
        self._has_called = False
        self._has_errored = False
        self._reported = Usage()

    @property
    def is_over(self) -> bool:
        """The child has told its progress, which is the last that it tells."""
        return self._progress is not None

    @property
    def progress(self) -> WorkerProgress:
        """What the child has told, or what can be seen from here where it did not come to it."""
        if self._progress is not None:
            return self._progress
        return WorkerProgress(
            made_tool_calls=self._has_called,
            tool_calls_errored=self._has_errored,
            response_delta_hash="",
        )

    def unreported(self) -> UsageReported | None:
        """Return what was settled and not told as usage: the child died, or a request failed."""
        spent, told = self._till.spent, self._reported
        left = Usage(
            spent.prompt_tokens - told.prompt_tokens,
            spent.completion_tokens - told.completion_tokens,
            spent.usd - told.usd,
        )
        if left.prompt_tokens <= 0 and left.completion_tokens <= 0 and left.usd < _NO_USD:
            return None
        self._reported += left
        return UsageReported(left)

    def again(self) -> StepRequest:
        """Return the request for another child; its events are compared with those told so far."""
        self._untold = [*self._told]
        request = self._request
        kept = self._replies.replies(
            request.session_id, request.loop_iteration, request.first_reply
        )
        return replace(request, replies=kept)

    def is_new(self, event: StepEvent) -> bool:
        """Take an event of the child, and say whether the engine is to be told of it."""
        if isinstance(event, WorkerProgress):
            self._progress = event
            return False
        key = _identity(event)
        if key in self._untold:
            # What stood before it was not repeated.
            del self._untold[: self._untold.index(key) + 1]
            return False
        self._told.append(key)
        if isinstance(event, UsageReported) and not self._is_of_before(event):
            self._reported += event.usage
        self._has_called |= isinstance(event, ToolCallStarted)
        self._has_errored |= isinstance(event, ToolCallFinished) and event.is_error
        return True

    def _is_of_before(self, event: UsageReported) -> bool:
        """Say whether the till of another process has paid for it."""
        return event.reply is not None and event.reply < len(self._request.replies)

    def serve(self, ask: Ask) -> Answer:
        """Return the answer.

        Raises:
            LedgerConflictError: A call is another session's, or its ordinal was used for another.
            CheckpointConflictError: Another reply is kept under that number.
            LoopctlError: What the desk, the store and the purse raise.
        """
        match ask:
            case AskRule(call):
                return self._desk.rule(self._checked(call))
            case AskCall(call, approval):
                return self._call(self._checked(call), approval)
            case KeepReply(number, reply):
                return Kept(self._keep(number, reply))
            case Reserve():
                self._untold.clear()
                return self._till.serve(ask)
            case Settle():
                return self._till.serve(ask)

    def _call(self, call: ToolCall, approval: str | None) -> ToolResult | Waiting:
        made = self._made.get(call.ordinal)
        if made is not None and _said(made.call) != _said(call):
            raise LedgerConflictError(call.key, "its ordinal was used for another call")
        if made is not None and made.answers(approval):
            return made.came
        self._untold.clear()
        came = self._desk.call(call, approval)
        if isinstance(came, ToolResult):
            came = replace(came, content=bounded(came.content))
        self._made[call.ordinal] = _Made(call, approval, came)
        return came

    def _keep(self, number: int, reply: str) -> str:
        """Return the reply as it was kept: the child knows fewer keys than the store."""
        if number not in self._kept:
            self._kept.add(number)
            self._untold.clear()
        step = (self._request.session_id, self._request.loop_iteration)
        self._replies.keep(*step, number, reply)
        return next(iter(self._replies.replies(*step, number)), reply)

    def _checked(self, call: ToolCall) -> ToolCall:
        step = (self._request.session_id, self._request.loop_iteration)
        if (call.session_id, call.iteration) != step:
            raise LedgerConflictError(call.key, "it belongs to another step")
        return call


def _said(call: ToolCall) -> str:
    """Return the tool and its arguments as text, also where they are no JSON (a NaN)."""
    return f"{call.tool} {json.dumps(call.arguments, sort_keys=True)}"


def _identity(event: StepEvent) -> Hashable:
    """Return what an event is known again by: a call's by its ordinal, others by what they say."""
    match event:
        case ToolCallStarted() | ToolCallFinished() | InterruptRequired():
            return (type(event).__name__, event.tool_call_id)
        case _:
            return event
