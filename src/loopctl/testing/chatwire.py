"""The bytes of OpenAI's chat API: what a scripted reply looks like on the wire."""

import hashlib
import json
import math
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Final

from loopctl.testing.script import ChatRequest, HttpError, ScriptedCall, ScriptedReply

DIMENSIONS: Final = 16
"""Of the vectors that :func:`vector` makes."""

DONE: Final = b"data: [DONE]\n\n"
"""The end of a stream."""

_PIECES: Final = 3
_SERVER: Final = 500
_CREATED: Final = 1_767_225_600


def completion(reply: ScriptedReply, request: ChatRequest) -> dict[str, Any]:
    """Return the body of a reply that is not streamed."""
    message: dict[str, Any] = {"role": "assistant", "content": reply.text or None}
    if reply.calls:
        message["tool_calls"] = [
            _call(call, request, index) for index, call in enumerate(reply.calls)
        ]
    if reply.refusal is not None:
        message["refusal"] = reply.refusal
    choice = {"index": 0, "message": message, "finish_reason": _finish(reply), "logprobs": None}
    return _envelope(request, "chat.completion", [choice]) | _usage(reply)


def no_choices(request: ChatRequest) -> dict[str, Any]:
    """Return the body of a reply that has no choices."""
    return _envelope(request, "chat.completion", [])


def chunks(reply: ScriptedReply, request: ChatRequest) -> Iterator[dict[str, Any]]:
    """Yield the pieces of a streamed reply; texts and arguments come in several pieces each."""
    yield _chunk(request, {"role": "assistant", "content": ""})
    for piece in _pieces(reply.text):
        yield _chunk(request, {"content": piece})
    if reply.refusal is not None:
        yield _chunk(request, {"refusal": reply.refusal})
    for index, call in enumerate(reply.calls):
        whole = _call(call, request, index)
        head = {"name": call.name, "arguments": ""}
        yield _chunk(
            request,
            {
                "tool_calls": [
                    {"index": index, "id": whole["id"], "type": "function", "function": head}
                ]
            },
        )
        for piece in _pieces(whole["function"]["arguments"]):
            delta = {"index": index, "function": {"arguments": piece}}
            yield _chunk(request, {"tool_calls": [delta]})
    yield _chunk(request, {}, _finish(reply))
    wants_usage = (request.body.get("stream_options") or {}).get("include_usage")
    if wants_usage and reply.usage is not None:
        yield _envelope(request, "chat.completion.chunk", []) | _usage(reply)


def event(value: Mapping[str, Any] | str) -> bytes:
    """Return a piece as a server-sent event; text is sent as it is."""
    text = value if isinstance(value, str) else json.dumps(value)
    return f"data: {text}\n\n".encode()


def error(fault: HttpError, request: ChatRequest) -> dict[str, Any]:
    """Return the body of an answer that is no success."""
    return {
        "error": {
            "message": fault.message.replace("{key}", request.key),
            "type": "invalid_request_error" if fault.status < _SERVER else "server_error",
            "param": None,
            "code": fault.code,
        }
    }


def models(names: Sequence[str]) -> dict[str, Any]:
    """Return the body of the list of models."""
    return {
        "object": "list",
        "data": [
            {"id": name, "object": "model", "created": _CREATED, "owned_by": "script"}
            for name in names
        ],
    }


def embeddings(request: ChatRequest) -> dict[str, Any]:
    """Return the body of the vectors for the texts of a request."""
    given = request.body.get("input", "")
    texts = [given] if isinstance(given, str) else list(given)
    words = sum(len(str(text).split()) for text in texts)
    return {
        "object": "list",
        "model": str(request.body.get("model", "")),
        "data": [
            {"object": "embedding", "index": index, "embedding": list(vector(str(text)))}
            for index, text in enumerate(texts)
        ],
        "usage": {"prompt_tokens": words, "total_tokens": words},
    }


def vector(text: str) -> tuple[float, ...]:
    """Return a vector of length 1 for a text: the more words two texts share, the nearer."""
    sums = [0.0] * DIMENSIONS
    for word in text.lower().split():
        digest = hashlib.sha256(word.encode("utf-8", "replace")).digest()
        sums[digest[0] % DIMENSIONS] += 1.0
    length = math.hypot(*sums) or 1.0
    return tuple(value / length for value in sums)


def _envelope(request: ChatRequest, kind: str, choices: list[dict[str, Any]]) -> dict[str, Any]:
    return {
        "id": f"chatcmpl-{request.number}",
        "object": kind,
        "created": _CREATED,
        "model": str(request.body.get("model", "")),
        "choices": choices,
    }


def _chunk(
    request: ChatRequest, delta: Mapping[str, Any], finish: str | None = None
) -> dict[str, Any]:
    choice = {"index": 0, "delta": delta, "finish_reason": finish, "logprobs": None}
    return _envelope(request, "chat.completion.chunk", [choice])


def _call(call: ScriptedCall, request: ChatRequest, index: int) -> dict[str, Any]:
    text = call.arguments if isinstance(call.arguments, str) else json.dumps(dict(call.arguments))
    return {
        "id": f"call_{request.number}_{index}" if call.id is None else call.id,
        "type": "function",
        "function": {"name": call.name, "arguments": text},
    }


def _finish(reply: ScriptedReply) -> str:
    return reply.finish or ("tool_calls" if reply.calls else "stop")


def _usage(reply: ScriptedReply) -> dict[str, Any]:
    if reply.usage is None:
        return {}
    prompt, answer = reply.usage
    return {
        "usage": {
            "prompt_tokens": prompt,
            "completion_tokens": answer,
            "total_tokens": prompt + answer,
        }
    }


def _pieces(text: str) -> Iterator[str]:
    size = max(1, math.ceil(len(text) / _PIECES))
    for start in range(0, len(text), size):
        yield text[start : start + size]
