"""What the engine and the model worker's process say to each other, one frame a line.

The engine begins a talk, under a number that it never gives twice, with a step, a question or
texts to embed. Within it the child tells events and asks, each ask under a number of its own, and
waits for the answers; it ends the talk, or the engine cancels it. Talk 0 is the greeting:
``Hello`` is the first line to the child, ``Ready`` (or ``Failed``) its first line back.
"""

from dataclasses import dataclass
from enum import StrEnum
from typing import Final, Generic, TypeVar

from loopctl.calls import (
    ApprovalRequired,
    OutcomeUnknown,
    Ruling,
    ToolCall,
    ToolResult,
    ToolSpec,
)
from loopctl.contextports import Answered, Question, Unanswered
from loopctl.domain import Usage
from loopctl.moneyports import Claim, Refused, Reserved
from loopctl.steps import StepEvent, StepRequest

VERSION: Final = 2
"""Of these messages; both sides must speak the same."""

GREETING: Final = 0
"""The talk that only says hello."""


# --- to the child ------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Hello:
    """The first line.

    Attributes:
        routes: JSON that ``worker/model`` reads; names of variables that hold keys, never a key.
    """

    routes: str
    version: int = VERSION


@dataclass(frozen=True, slots=True)
class DoStep:
    """Do a step, with these tools."""

    request: StepRequest
    specs: tuple[ToolSpec, ...] = ()


@dataclass(frozen=True, slots=True)
class Embed:
    """Give a vector for each text."""

    texts: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Cancel:
    """End the talk; nothing of it is listened to any more."""


@dataclass(frozen=True, slots=True)
class Done:
    """The answer to what has none: it was done."""


@dataclass(frozen=True, slots=True)
class Kept:
    """The answer to :class:`KeepReply`: the reply as it is given again, without keys."""

    reply: str


Work = DoStep | Question | Embed
"""With which a talk begins."""

Answer = Ruling | ToolResult | ApprovalRequired | OutcomeUnknown | Reserved | Refused | Kept | Done
"""To an :data:`Ask`, under its number."""

ToChild = Hello | Work | Cancel | Answer


# --- to the engine -----------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Ready:
    """The child has understood the greeting; its slow imports may still go on."""

    version: int = VERSION


@dataclass(frozen=True, slots=True)
class AskRule:
    """``Door.rule``; answered by a ``Ruling``."""

    call: ToolCall


@dataclass(frozen=True, slots=True)
class AskCall:
    """``Door.call``; answered by a ``ToolResult``, ``ApprovalRequired`` or ``OutcomeUnknown``."""

    call: ToolCall
    approval: str | None = None


@dataclass(frozen=True, slots=True)
class KeepReply:
    """``Door.keep_reply``; answered by ``Kept``."""

    number: int
    reply: str


@dataclass(frozen=True, slots=True)
class Reserve:
    """``Till.reserve``; answered by ``Reserved`` or ``Refused``."""

    claim: Claim


@dataclass(frozen=True, slots=True)
class Settle:
    """``Till.settle``; answered by ``Done``."""

    reservation: int
    usage: Usage


@dataclass(frozen=True, slots=True)
class Ended:
    """The step has come to its end; all its events were told."""


@dataclass(frozen=True, slots=True)
class Vectors:
    """One for each text; ``None`` where they cannot be had."""

    vectors: tuple[tuple[float, ...], ...] | None


class Failure(StrEnum):
    """Why a talk has no result."""

    ENVIRONMENT = "environment"
    """The machine's fault: it lacks something, or a setting does not fit."""
    BUG = "bug"
    """A fault of ours."""
    CANCELLED = "cancelled"
    """It was cancelled."""


@dataclass(frozen=True, slots=True)
class Failed:
    """The talk has ended without its result; ``text`` says what, why, what to do."""

    kind: Failure
    text: str


Money = Reserve | Settle
Ask = AskRule | AskCall | KeepReply | Money
End = Ended | Answered | Unanswered | Vectors | Failed
ToEngine = Ready | StepEvent | Ask | End

BodyT = TypeVar("BodyT", bound=ToChild | ToEngine, covariant=True)  # noqa: PLC0105 - no suffix: bodies


@dataclass(frozen=True)
class Frame(Generic[BodyT]):
    """One line.

    Attributes:
        talk: Which one it belongs to.
        ask: The number of the ask, or of what is answered; 0 for everything else.
    """

    talk: int
    body: BodyT
    ask: int = 0
