"""One question, one answer: plain text, or JSON of the form that was asked for."""

import json
import re
from collections.abc import Mapping
from typing import Any, Final

from loopctl.calls import ToolSpec
from loopctl.contextports import Answered, Question, Unanswered
from loopctl.domain import Usage
from loopctl.moneyports import Refused
from loopctl.worker.model.reply import Message, Model, NoMoney, Overflow, Reply, Unavailable

_RETRIES: Final = 2
_SAID: Final = 300
_TOOL: Final = "answer"
_FENCED: Final = re.compile(r"```(?:json)?\s*\n(.*?)\n```", re.DOTALL)


def answer(question: Question, model: Model) -> Answered | Unanswered:
    """Ask a model once, without tools of the run.

    A form is asked for by a call of a tool that has it as its arguments, which is what models keep
    to best; JSON as plain text is taken too. What does not fit is asked for again, twice, with what
    was wrong.

    Args:
        question: Its limit of tokens, its task and its caps are the model's to keep: see
            :func:`loopctl.worker.model.open.ask`.
        model: Asked under the question's tier and purpose.

    Returns:
        The answer with the usage of all tries; or why there is none.

    Raises:
        CancelledError: The run was asked to stop.
    """
    messages: list[Message] = [
        {"role": "system", "content": question.system},
        {"role": "user", "content": question.prompt},
    ]
    tools = () if question.answer is None else (_tool(question.answer),)
    usage = Usage()
    fault = ""
    for _ in range(_RETRIES + 1):
        reply = model.complete(
            question.tier, messages, tools, purpose=question.purpose, must_call=bool(tools)
        )
        if not isinstance(reply, Reply):
            return Unanswered(reply.reason, usage, _refused(reply))
        usage += reply.usage
        text, fault = _plain(reply) if question.answer is None else _fitting(reply, question.answer)
        if not fault:
            return Answered(text, usage)
        messages += _again(reply, fault)
    return Unanswered(f"the model gave no usable answer, {_RETRIES + 1} times: {fault}", usage)


def _refused(reply: Overflow | NoMoney | Unavailable) -> Refused | None:
    if not isinstance(reply, NoMoney):
        return None
    return Refused(reply.cap, reply.reason, reply.needed)


def _tool(schema: Mapping[str, Any]) -> ToolSpec:
    return ToolSpec(_TOOL, "Give the answer. Call this once, with the whole answer.", schema)


def _plain(reply: Reply) -> tuple[str, str]:
    if reply.finish == "content_filter":
        return "", "it refused to answer"
    return reply.text, "" if reply.text.strip() else "there is nothing in the answer"


def _fitting(reply: Reply, schema: Mapping[str, Any]) -> tuple[str, str]:
    """Return the answer as JSON and nothing, or nothing and what is wrong with it."""
    # It comes with LiteLLM's import, and the engine, which never needs it, is spared it.
    import jsonschema  # type: ignore[import-untyped] # noqa: PLC0415

    texts = [call.arguments for call in reply.calls if call.name == _TOOL]
    texts += [found[1] for found in _FENCED.finditer(reply.text)]
    text = next(iter([*texts, reply.text]))
    if not text.strip():
        return "", f"there is nothing in the answer: call {_TOOL}"
    try:
        value = json.loads(text, parse_constant=_no_constant)
        jsonschema.validate(value, schema)
    except jsonschema.ValidationError as exc:
        place = "/".join(map(str, exc.absolute_path))
        return "", f"{place or 'the answer'}: {_short(exc.message)}"
    except (ValueError, RecursionError) as exc:
        if reply.finish == "length":
            return "", "the answer was cut off: make it shorter"
        return "", f"the answer is no JSON: {_short(str(exc))}"
    return json.dumps(value, ensure_ascii=False, allow_nan=False), ""


def _no_constant(name: str) -> None:
    raise ValueError(f"{name} is no number of JSON")


def _again(reply: Reply, fault: str) -> list[Message]:
    """Return the messages that show a reply and say what was wrong with it."""
    said: dict[str, Any] = {"role": "assistant", "content": reply.text}
    if not reply.calls:
        said["content"] = reply.text or "(nothing)"
        return [said, {"role": "user", "content": f"That cannot be used: {fault}. Try again."}]
    calls = [(call.id or f"call_{index}", call) for index, call in enumerate(reply.calls)]
    said["tool_calls"] = [
        {
            "id": id_,
            "type": "function",
            # Providers refuse a past with arguments that are no JSON.
            "function": {"name": call.name, "arguments": _readable(call.arguments)},
        }
        for id_, call in calls
    ]
    told = [
        {"role": "tool", "tool_call_id": id_, "content": f"That cannot be used: {fault}."}
        for id_, _ in calls
    ]
    return [said, *told]


def _readable(arguments: str) -> str:
    try:
        is_object = isinstance(json.loads(arguments), dict)
    except (ValueError, RecursionError):
        is_object = False
    return arguments if is_object else json.dumps({"unreadable": arguments})


def _short(text: str) -> str:
    line = " ".join(text.split())
    return line if len(line) <= _SAID else f"{line[:_SAID]}..."
