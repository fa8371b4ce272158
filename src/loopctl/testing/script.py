"""What a scripted model says: replies, tool calls and faults, as values."""

import threading
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Final

OVERFLOW: Final = "context_length_exceeded"
"""The code by which OpenAI names a request that is too long."""


@dataclass(frozen=True, slots=True)
class ChatRequest:
    """One request as it came over the wire.

    Attributes:
        number: From 1, in the order of arrival.
        path: ``/v1/chat/completions``, ``/v1/embeddings``, ``/v1/models``.
        headers: Names in lower case.
        body: Parsed; empty where there was none, or it was no JSON object.
    """

    number: int
    path: str
    headers: Mapping[str, str]
    body: Mapping[str, Any]

    @property
    def messages(self) -> Sequence[Mapping[str, Any]]:
        """The messages, as they were sent."""
        return tuple(self.body.get("messages", ()))

    @property
    def tools(self) -> Sequence[Mapping[str, Any]]:
        """The tools, as they were sent."""
        return tuple(self.body.get("tools", ()))

    @property
    def is_streamed(self) -> bool:
        """The client wants the reply in pieces."""
        return bool(self.body.get("stream"))

    @property
    def key(self) -> str:
        """The bearer key; empty where there was none."""
        return self.headers.get("authorization", "").removeprefix("Bearer ")


@dataclass(frozen=True, slots=True)
class ScriptedCall:
    """A call that a reply asks for.

    Attributes:
        arguments: A mapping; or text, sent as it is, which need not be JSON.
        id: ``None``: ``call_`` and a number of its own.
    """

    name: str
    arguments: Mapping[str, Any] | str = field(default_factory=dict)
    id: str | None = None


@dataclass(frozen=True, slots=True)
class ScriptedReply:
    """A reply.

    Attributes:
        finish: ``None``: ``tool_calls`` where there are calls, else ``stop``.
        usage: Prompt and completion tokens; ``None`` where the provider reports none.
        refusal: The provider's own field for a model that will not.
    """

    text: str = ""
    calls: Sequence[ScriptedCall] = ()
    finish: str | None = None
    usage: tuple[int, int] | None = (100, 10)
    refusal: str | None = None


@dataclass(frozen=True, slots=True)
class HttpError:
    """An answer with a status that is no success.

    Attributes:
        message: ``{key}`` in it becomes the key of the request: some providers echo it.
        headers: Besides the usual ones.
    """

    status: int
    message: str = "scripted fault"
    code: str | None = None
    headers: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Silence:
    """No answer, until the server is closed."""


@dataclass(frozen=True, slots=True)
class CutOff:
    """A reply that breaks off in its middle.

    Attributes:
        is_clean: The stream ends as if it were whole, without the last pieces; else the
            connection breaks.
    """

    reply: ScriptedReply
    is_clean: bool = False


@dataclass(frozen=True, slots=True)
class Garbled:
    """Success, and then a body or a piece of the stream that is no JSON."""

    text: str = '{"id": "chatcmpl-1", "choices": [{"index": 0, '


@dataclass(frozen=True, slots=True)
class NoChoices:
    """A reply whose list of choices is empty."""


@dataclass(frozen=True, slots=True)
class HangUp:
    """The connection is closed without a word."""


@dataclass(frozen=True, slots=True)
class Held:
    """What comes once ``until`` is set; nothing where the server is closed before."""

    until: threading.Event
    then: "Play"


Play = ScriptedReply | HttpError | Silence | CutOff | Garbled | NoChoices | HangUp | Held
"""What may come back for a request."""

Script = Sequence[Play] | Callable[[ChatRequest], Play]
"""One play for each request in turn, the last one for ever; or a function of the request.

The function is called by several threads where several requests come at once.
"""


def rate_limited(retry_after: str | None = None) -> HttpError:
    """Return status 429, with the header ``Retry-After`` where it is given."""
    headers = {} if retry_after is None else {"Retry-After": retry_after}
    return HttpError(429, "Rate limit reached", "rate_limit_exceeded", headers)


def wrong_key() -> HttpError:
    """Return status 401; the message echoes the key, as some providers do."""
    return HttpError(401, "Incorrect API key provided: {key}", "invalid_api_key")


def overflow(limit: int = 4096) -> HttpError:
    """Return status 400, for a request that is longer than ``limit`` tokens."""
    return HttpError(400, f"This model's maximum context length is {limit} tokens.", OVERFLOW)
