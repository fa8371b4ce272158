"""The child's side of a talk: asks the engine and waits for the answers."""

import itertools
import queue
import threading
from collections.abc import Callable

from loopctl.calls import ApprovalRequired, OutcomeUnknown, Ruling, ToolCall, ToolResult, Waiting
from loopctl.domain import Usage
from loopctl.errors import CancelledError, EnvironmentFaultError
from loopctl.moneyports import Claim, Refused, Reserved
from loopctl.worker.protocol import (
    Answer,
    Ask,
    AskCall,
    AskRule,
    Frame,
    KeepReply,
    Kept,
    Reserve,
    Settle,
    ToEngine,
)

Send = Callable[[Frame[ToEngine]], None]
"""Writes a frame to the engine; any thread may call it."""


class PipeDoor:
    """The ports ``Door`` and ``Till`` of one talk. Its threads may ask at once."""

    def __init__(self, talk: int, send: Send) -> None:
        self._talk = talk
        self._send = send
        self._numbers = itertools.count(1)
        self._lock = threading.Lock()
        self._waiting: dict[int, queue.SimpleQueue[Answer | None]] = {}
        self.stopped = threading.Event()
        """Set when the engine has ended the talk."""

    def rule(self, call: ToolCall) -> Ruling:
        """Return what the policy says of a call; does nothing.

        Raises:
            CancelledError: The talk was cancelled.
        """
        answer = self._ask(AskRule(call))
        if isinstance(answer, Ruling):
            return answer
        raise _mismatch("what the policy says", answer)

    def call(self, call: ToolCall, approval: str | None = None) -> ToolResult | Waiting:
        """Return what a call came to, or why a person has to decide first.

        Raises:
            CancelledError: The talk was cancelled.
        """
        answer = self._ask(AskCall(call, approval))
        if isinstance(answer, ToolResult | ApprovalRequired | OutcomeUnknown):
            return answer
        raise _mismatch("a call", answer)

    def keep_reply(self, number: int, reply: str) -> str:
        """Keep a reply under its number in the iteration; return it as it is given again.

        Raises:
            CancelledError: The talk was cancelled.
        """
        answer = self._ask(KeepReply(number, reply))
        if isinstance(answer, Kept):
            return answer.reply
        raise _mismatch("a reply to be kept", answer)

    def reserve(self, claim: Claim) -> Reserved | Refused:
        """Put the worst case aside, or say why the call must not be made.

        Raises:
            CancelledError: The talk was cancelled.
        """
        answer = self._ask(Reserve(claim))
        if isinstance(answer, Reserved | Refused):
            return answer
        raise _mismatch("a claim", answer)

    def settle(self, reservation: int, usage: Usage) -> None:
        """Replace a reservation by what the call has cost; also in a talk that was cancelled.

        What is on its way when a step is ended has its price all the same. Nobody waits for the
        answer then.
        """
        self._asked(Settle(reservation, usage)).get()

    def take(self, number: int, answer: Answer) -> None:
        """Hand on the engine's answer to the ask of that number."""
        with self._lock:
            slot = self._waiting.pop(number, None)
        if slot is not None:
            slot.put(answer)

    def cancel(self) -> None:
        """Wake every ask that waits, and refuse all further ones, with ``CancelledError``."""
        with self._lock:
            self.stopped.set()
            slots = [*self._waiting.values()]
            self._waiting.clear()
        for slot in slots:
            slot.put(None)

    def _ask(self, ask: Ask) -> Answer:
        if self.stopped.is_set():
            raise _cancelled()
        answer = self._asked(ask).get()
        if answer is None:
            raise _cancelled()
        return answer

    def _asked(self, ask: Ask) -> queue.SimpleQueue[Answer | None]:
        """Send an ask; return where its answer comes, or ``None`` where the talk is cancelled."""
        slot: queue.SimpleQueue[Answer | None] = queue.SimpleQueue()
        with self._lock:
            number = next(self._numbers)
            if self.stopped.is_set():
                slot.put(None)
            else:
                self._waiting[number] = slot
        self._send(Frame(self._talk, ask, number))
        return slot


def _cancelled() -> CancelledError:
    return CancelledError("the engine has ended this step")


def _mismatch(asked: str, answer: Answer) -> EnvironmentFaultError:
    return EnvironmentFaultError(
        f"the engine was asked for {asked} and answered with {type(answer).__name__}; the model "
        "worker's process and loop must be of the same version"
    )
