"""Replies of a model: as they are kept, echoed to it, and understood as calls."""

import json
import re
from collections.abc import Mapping
from typing import Any, Final

from loopctl.domain import Usage
from loopctl.fencing import clean, one_line
from loopctl.worker.graph.schema import WrongArgumentsError, check_arguments, read_arguments
from loopctl.worker.graph.state import Call, State, Surroundings
from loopctl.worker.model.reply import AskedCall, Reply

MAX_CALLS: Final = 64
"""Of one reply that are looked at; what is more is answered with an error."""

_NOT_IN_NAME: Final = re.compile(r"[^A-Za-z0-9_-]")
_NAME_CHARS: Final = 64
_ID_CHARS: Final = 8192
"""Of a call's id; some providers put state of their own into it."""

CUT: Final = "length"
"""How a reply finishes that has reached the output limit."""


def dump_reply(reply: Reply) -> str:
    """Return a reply as it is kept: ASCII JSON, with what it cost."""
    return json.dumps(
        {
            "text": clean(reply.text),
            "calls": [[call.id, call.name, call.arguments] for call in reply.calls],
            "finish": reply.finish,
            "model": reply.model,
            "usage": [reply.usage.prompt_tokens, reply.usage.completion_tokens, reply.usage.usd],
        },
        sort_keys=True,
    )


def load_reply(text: str) -> Reply:
    """Return the reply that was kept as ``text``.

    Raises:
        ValueError: It is none.
    """
    try:
        raw = json.loads(text)
        calls = tuple(AskedCall(*map(str, call)) for call in raw["calls"])
        usage = Usage(*raw.get("usage", ()))
        return Reply(str(raw["text"]), calls, usage, str(raw["model"]), str(raw["finish"]))
    except (TypeError, KeyError) as error:
        raise ValueError(f"a kept reply has other fields: {error}") from error


def echoed(reply: Reply, calls: list[Call]) -> dict[str, Any]:
    """Return the reply as a message, such that every provider takes it back.

    Some of them refuse a name with other characters or arguments that are no object, so that one
    wrong call would make every later request fail.
    """
    message: dict[str, Any] = {"role": "assistant", "content": clean(reply.text) or None}
    if calls:
        message["tool_calls"] = [
            {
                "id": call["id"],
                "type": "function",
                "function": {
                    "name": _NOT_IN_NAME.sub("_", call["tool"])[:_NAME_CHARS] or "unknown",
                    "arguments": call["arguments"] or "{}",
                },
            }
            for call in calls
        ]
    return message


def understood(
    reply: Reply, state: State, around: Surroundings, *, is_given_again: bool
) -> list[Call]:
    """Return the calls that a reply asks for, in its order; nothing of them is done or ruled.

    Args:
        reply: With at least one call.
        state: Of the step, before the reply.
        around: The step.
        is_given_again: The reply was kept before.
    """
    ids = _ids(reply, state)
    calls = []
    # One beyond the limit stands for all that are: it says so.
    for index, asked in enumerate(reply.calls[: MAX_CALLS + 1]):
        call = Call(
            ordinal=state["next_call"] + index,
            id=ids[index],
            tool=clean(asked.name),
            arguments="",
            error="",
            action="",
            reason="",
            is_given_again=is_given_again,
        )
        if index >= MAX_CALLS:
            call["error"] = f"a reply may ask for {MAX_CALLS} calls; what came after was not made"
        else:
            _understand(call, asked, around)
        is_last = index == len(reply.calls) - 1
        if call["error"] and reply.finish == CUT and is_last:
            call["error"] = (
                "your reply was cut at the output limit, so this call is not complete and was not "
                "made; write less at once, for example a file in several parts"
            )
        calls.append(call)
    return calls


def _ids(reply: Reply, state: State) -> list[str]:
    """Return by which ids the calls are echoed: the provider's own where it gives sound ones.

    It pairs results with calls by them, and some send none, or the same ones again and again.
    """
    taken = {message["tool_call_id"] for message in state["thread"] if message["role"] == "tool"}
    ids: list[str] = []
    for index, asked in enumerate(reply.calls[: MAX_CALLS + 1]):
        is_sound = 0 < len(asked.id) <= _ID_CHARS and asked.id.isascii() and asked.id.isprintable()
        is_own = not is_sound or asked.id in taken
        ids.append(f"call_{state['next_call'] + index}" if is_own else asked.id)
        taken.add(ids[-1])
    return ids


def _understand(call: Call, asked: AskedCall, around: Surroundings) -> None:
    spec = around.offered.get(asked.name)
    if spec is None:
        known = ", ".join(around.offered)
        call["error"] = f"there is no tool {one_line(call['tool'], 80)!r} here; there are: {known}"
        return
    if not around.is_allowed(asked.name):
        may = ", ".join(name for name in around.offered if around.is_allowed(name))
        call["error"] = f"this step makes the plan; {asked.name} comes after it. Call one of: {may}"
        return
    try:
        arguments = read_arguments(asked.arguments)
        check_arguments(arguments, spec.parameters)
    except WrongArgumentsError as error:
        call["error"] = str(error)
        return
    call["arguments"] = json.dumps(arguments, sort_keys=True)


def arguments_of(call: Call) -> Mapping[str, Any]:
    """Return the arguments of a call that is not wrong."""
    arguments: Mapping[str, Any] = json.loads(call["arguments"])
    return arguments


def answer_of(reply: Reply, calls: list[Call]) -> list[Any]:
    """Return what a reply says, in a form that is equal for equal replies whatever their ids."""
    return [
        clean(reply.text),
        [
            [call["tool"], call["arguments"] or clean(asked.arguments)]
            for call, asked in zip(calls, reply.calls, strict=False)
        ],
    ]
