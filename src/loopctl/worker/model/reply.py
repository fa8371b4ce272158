"""What a model is asked and what comes back, in words of our own; no library's types.

Messages are plain dictionaries in the form of the OpenAI chat API (``role``, ``content``,
``tool_calls``, ``tool_call_id``), since every provider is spoken to through it.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Protocol

from loopctl.calls import ToolSpec
from loopctl.domain import Usage
from loopctl.moneyports import Cap

Message = Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class AskedCall:
    """A call that a reply asks for.

    Attributes:
        id: The provider's, which may be empty or repeated; only echoed back to it.
        arguments: As the model wrote them: text that should be a JSON object.
    """

    id: str
    name: str
    arguments: str


@dataclass(frozen=True, slots=True)
class Reply:
    """A whole reply, its calls complete.

    Attributes:
        finish: The provider's word: ``stop``, ``tool_calls``, ``length``, ``content_filter``.
    """

    text: str
    calls: tuple[AskedCall, ...] = ()
    usage: Usage = field(default_factory=Usage)
    model: str = ""
    finish: str = "stop"


@dataclass(frozen=True, slots=True)
class Overflow:
    """The request does not fit the model's window: the context has to be made shorter."""

    reason: str


@dataclass(frozen=True, slots=True)
class NoMoney:
    """The worst case does not fit a cap; no request has left.

    Attributes:
        needed: The cap under which it would fit, in tokens or US dollars; 0 where none is known.
    """

    cap: Cap | None
    reason: str
    needed: float = 0.0


@dataclass(frozen=True, slots=True)
class Unavailable:
    """No model of the route can be had, after all retries and fallbacks.

    Attributes:
        reason: What, which and what to do; one line, no key in it.
    """

    reason: str


class Model(Protocol):
    """Asks the model of a tier; the money is put aside before each request and settled after."""

    def complete(
        self,
        tier: str,
        messages: Sequence[Message],
        tools: Sequence[ToolSpec],
        *,
        purpose: str,
        must_call: bool = False,
    ) -> Reply | Overflow | NoMoney | Unavailable:
        """Return a whole reply.

        Args:
            tier: ``cheap``, ``standard`` or ``premium``.
            messages: The stable ones first.
            tools: That may be called.
            purpose: For the money's ledger and the report.
            must_call: A reply without a tool call makes no sense here.

        Raises:
            CancelledError: The run was asked to stop.
        """
        ...
