"""One request on the wire, and its reply put together from its pieces."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Final

from loopctl.calls import ToolSpec
from loopctl.errors import CancelledError
from loopctl.worker.model.lite import library
from loopctl.worker.model.reply import AskedCall, Message
from loopctl.worker.model.routes import Attempt
from loopctl.worker.model.schemas import sent_schema

_CONNECT_S: Final = 30.0
_NO_KEY: Final = "none"
"""Sent where no key is needed: without one LiteLLM looks for one in the environment by itself."""


@dataclass(frozen=True, slots=True)
class Manner:
    """How a request is made.

    Attributes:
        is_streamed: The reply comes in pieces.
        is_forced: The reply must call a tool.
    """

    is_streamed: bool = True
    is_forced: bool = False

    def plainer(self) -> "Manner | None":
        """Return the next manner that asks less of the provider; ``None`` where there is none."""
        if self.is_forced:
            return replace(self, is_forced=False)
        return replace(self, is_streamed=False) if self.is_streamed else None


@dataclass(slots=True)
class Pieces:
    """A reply on its way; what has arrived of one that broke off is still in it.

    Attributes:
        usage: LiteLLM's, where the provider has reported one.
    """

    text: str = ""
    calls: list[AskedCall] = field(default_factory=list)
    finish: str = ""
    usage: Any = None
    _index: dict[int, int] = field(default_factory=dict)

    @property
    def is_empty(self) -> bool:
        """The model said nothing, for no reason of its own."""
        said = self.text.strip() or self.calls
        return not said and self.finish not in {"length", "content_filter"}

    @property
    def written(self) -> str:
        """All that the model wrote, for counting."""
        return self.text + "".join(call.name + call.arguments for call in self.calls)

    def add(self, choice: Any) -> None:
        """Take a piece of a stream."""
        self.text += choice.delta.content or ""
        for delta in choice.delta.tool_calls or ():
            self._add_call(delta)
        self.finish = choice.finish_reason or self.finish

    def _add_call(self, delta: Any) -> None:
        name = delta.function.name or ""
        position = self._index.get(delta.index)
        if position is not None and self._begins_another(self.calls[position], delta.id, name):
            position = None
        if position is None:
            position = self._index[delta.index] = len(self.calls)
            self.calls.append(AskedCall("", "", ""))
        call = self.calls[position]
        self.calls[position] = AskedCall(
            call.id or delta.id or "",
            call.name or name,
            call.arguments + (delta.function.arguments or ""),
        )

    @staticmethod
    def _begins_another(call: AskedCall, id_: str | None, name: str) -> bool:
        """Some providers give every call the same index: then a new id or name begins one."""
        if id_ and call.id:
            return id_ != call.id
        return bool(name and call.name and call.arguments)


def function_tools(tools: Sequence[ToolSpec]) -> list[dict[str, Any]]:
    """Return tools as they are sent: functions of ours, never a tool that the provider runs."""
    return [
        {
            "type": "function",
            "function": {
                "name": tool.name,
                "description": tool.description,
                "parameters": sent_schema(tool.parameters),
            },
        }
        for tool in tools
    ]


def clean(value: Any) -> Any:
    """Return JSON values with what UTF-8 cannot say replaced by ``?``, so that they can be sent."""
    if isinstance(value, str):
        return value.encode("utf-8", "replace").decode()
    if isinstance(value, Mapping):
        return {clean(key): clean(found) for key, found in value.items()}
    if isinstance(value, list | tuple):
        return [clean(found) for found in value]
    return value


def access(attempt: Attempt, env: Mapping[str, str]) -> dict[str, Any]:
    """Return where a request goes and with which key; read anew for each."""
    if attempt.key_name is not None:
        key: str | None = env.get(attempt.key_name, "").strip() or _NO_KEY
    else:
        key = None if attempt.names or attempt.api_base is None else _NO_KEY
    # LiteLLM's own retries are off: each one has to be reserved and counted here.
    return {
        "model": attempt.model,
        "api_base": attempt.api_base,
        "api_key": key,
        "num_retries": 0,
        "max_retries": 0,
    }


def patience_of(request_s: float) -> Any:
    """Return the time limits of a request in httpx's form: for connecting, and for each piece."""
    import httpx  # noqa: PLC0415  # comes with LiteLLM

    return httpx.Timeout(request_s, connect=min(_CONNECT_S, request_s))


def send(
    who: Mapping[str, Any],
    messages: Sequence[Message],
    tools: Sequence[Mapping[str, Any]],
    manner: Manner,
    *,
    output_tokens: int,
    request_s: float,
    into: Pieces,
    is_stopped: Callable[[], bool],
) -> None:
    """Make one request and put its reply into ``into``, whole.

    Args:
        who: From :func:`access`.
        messages: Clean ones.
        tools: From :func:`function_tools`.
        manner: How.
        output_tokens: The limit that is sent.
        request_s: How long each piece may take.
        into: Empty; holds what has arrived also where this raises.
        is_stopped: Asked between the pieces.

    Raises:
        CancelledError: It was stopped.
        Exception: Whatever LiteLLM raises, and where a stream ends too early.
    """
    options: dict[str, Any] = {"max_tokens": output_tokens, "timeout": patience_of(request_s)}
    if tools:
        options["tools"] = list(tools)
        if manner.is_forced:
            options["tool_choice"] = "required"
    if manner.is_streamed:
        options |= {"stream": True, "stream_options": {"include_usage": True}}
    answer = library().completion(**who, messages=list(messages), drop_params=True, **options)
    if manner.is_streamed:
        _read_stream(answer, into, is_stopped)
    else:
        _read_whole(answer, into)


def _read_stream(answer: Any, into: Pieces, is_stopped: Callable[[], bool]) -> None:
    for chunk in answer:
        if is_stopped():
            raise CancelledError
        for choice in chunk.choices[:1]:
            into.add(choice)
    # LiteLLM makes up a usage and an end where the provider sent none; these are the provider's.
    found = [chunk.usage for chunk in answer.chunks if getattr(chunk, "usage", None) is not None]
    into.usage = found[-1] if found else None
    if not (answer.received_finish_reason or answer.intermittent_finish_reason):
        raise EOFError("the stream ended before its end was said")


def _read_whole(answer: Any, into: Pieces) -> None:
    usage = getattr(answer, "usage", None)
    into.usage = usage if usage is not None and usage.prompt_tokens else None
    for choice in answer.choices[:1]:
        message = choice.message
        refusal = getattr(message, "refusal", None)
        into.text = message.content or refusal or ""
        into.calls += [
            AskedCall(call.id or "", call.function.name or "", call.function.arguments or "")
            for call in message.tool_calls or ()
        ]
        into.finish = "content_filter" if refusal else choice.finish_reason or "stop"
