"""The nodes that ask the model: assemble, call_llm, and parse with its rulings."""

from typing import Any, Final

from langgraph.runtime import Runtime

from loopctl.fencing import clean, one_line
from loopctl.steps import BudgetRefused, OutputTail, UsageReported
from loopctl.worker.graph import story
from loopctl.worker.graph.ends import End, ended_by_limit
from loopctl.worker.graph.prompt import LEVELS, assemble, shortened
from loopctl.worker.graph.replies import (
    CUT,
    answer_of,
    arguments_of,
    dump_reply,
    echoed,
    load_reply,
    understood,
)
from loopctl.worker.graph.state import Call, State, Surroundings, tool_call
from loopctl.worker.model.reply import NoMoney, Overflow, Reply, Unavailable

FILTERED: Final = "content_filter"
"""How a reply finishes that its provider has withheld."""

_Update = dict[str, Any]
_Around = Runtime[Surroundings]


def assemble_request(state: State, runtime: _Around) -> _Update:
    """Make what goes before the step's own messages; it is no part of the state."""
    _prompt(state, runtime.context)
    return {"level": state["level"]}


def call_llm(state: State, runtime: _Around) -> _Update:
    """Take the reply that was kept, or ask the model and keep what it replies."""
    around = runtime.context
    request = around.request
    number = request.first_reply + state["replies"]
    if state["replies"] < len(request.replies):
        text = request.replies[state["replies"]]
        # Kept once more under its number, by which the engine knows how many a step has used.
        around.door.keep_reply(number, text)
        reply = load_reply(text)
        if request.resume is None or state["replies"] >= request.resume.paid:
            _paid(state, reply, around)
        return _replied(state, reply, is_given_again=True)
    came = around.model.complete(
        request.tier,
        [*_prompt(state, around), *shortened(state["thread"], state["level"])],
        tuple(around.offered.values()),
        purpose="plan" if request.is_planning else "step",
        must_call=request.is_planning,
    )
    match came:
        case Reply():
            kept = load_reply(around.door.keep_reply(number, dump_reply(came)))
            _paid(state, came, around)
            return _replied(state, kept, is_given_again=False)
        case Overflow(reason):
            return _overflown(state, around, reason)
        case NoMoney(cap, reason, needed):
            around.events.append(BudgetRefused(cap, reason, needed))
            return {"end": End.NO_MONEY.value, "reply": {}}
        case Unavailable(reason):
            around.events.append(OutputTail(exit=1, text=reason, is_environment=True))
            return {"end": End.NO_MODEL.value, "reply": {}}


def parse(state: State, runtime: _Around) -> _Update:
    """Understand the reply, and have every call of it ruled, in order, before any is made."""
    around = runtime.context
    reply = load_reply(state["reply"]["text"])
    if reply.finish == FILTERED:
        return _withheld(reply, around)
    if not reply.calls:
        return _without_call(state, reply, around)
    calls = understood(reply, state, around, is_given_again=state["reply"]["is_given_again"])
    for call in calls:
        _rule(call, around)
    is_wrong = all(call["error"] for call in calls)
    return {
        "calls": calls,
        "cursor": 0,
        "next_call": state["next_call"] + len(calls),
        "thread": [echoed(reply, calls)],
        "story": story.said(reply.text),
        "answers": [answer_of(reply, calls)],
        "wrong": state["wrong"] + 1 if is_wrong else 0,
    }


def _prompt(state: State, around: Surroundings) -> list[dict[str, Any]]:
    level = state["level"]
    if level not in around.prompts:
        around.prompts[level] = assemble(around.request, level, around.offered_bytes)
    return around.prompts[level]


def _paid(state: State, reply: Reply, around: Surroundings) -> None:
    """Tell what a reply has cost: once in the life of its step, whoever asked for it."""
    around.usage += reply.usage
    around.events.append(UsageReported(reply.usage, state["replies"]))


def _replied(state: State, reply: Reply, *, is_given_again: bool) -> _Update:
    kept = {"text": dump_reply(reply), "is_given_again": is_given_again}
    return {"reply": kept, "replies": state["replies"] + 1, "calls": [], "cursor": 0}


def _overflown(state: State, around: Surroundings, reason: str) -> _Update:
    if state["level"] < LEVELS:
        return {"level": state["level"] + 1, "reply": {}}
    said = (
        "The request does not fit the model's window, though everything old was left out of it: "
        f"{one_line(clean(reason), 300)}. Give the task a shorter prompt, or its tier a model with "
        "a larger window."
    )
    around.events.append(OutputTail(exit=1, text=said))
    return {"end": End.TOO_LONG.value, "reply": {}, "story": [f"[{said}]"]}


def _withheld(reply: Reply, around: Surroundings) -> _Update:
    said = "The model's provider withheld its reply (content filter). Put the work another way."
    around.events.append(OutputTail(exit=1, text=said))
    return {
        "end": End.WITHHELD.value,
        "story": [*story.said(reply.text), f"[{said}]"],
        "answers": [[clean(reply.text), [], FILTERED]],
    }


def _without_call(state: State, reply: Reply, around: Surroundings) -> _Update:
    """Remind the model that only calls count, once; an empty reply is a wrong one."""
    text = clean(reply.text).strip()
    update: _Update = {"calls": [], "answers": [[text, []]], "story": story.said(text)}
    if not text:
        update |= {"errored": True, "wrong": state["wrong"] + 1, "story": ["[an empty reply]"]}
        why = "Your reply was empty."
    elif state["reminded"]:
        return update | {"wrong": 0, "end": End.ANSWERED.value}
    elif reply.finish == CUT:
        update |= {"wrong": 0, "reminded": True, "thread": [echoed(reply, [])]}
        why = "Your reply was cut at the output limit before any call."
    else:
        update |= {"wrong": 0, "reminded": True, "thread": [echoed(reply, [])]}
        why = "Your reply called no tool, and text alone does nothing."
    note = _from_harness(why, around)
    update["thread"] = [*update.get("thread", []), note]
    return update | ended_by_limit(state["replies"], update["wrong"], around)


def _from_harness(why: str, around: Surroundings) -> dict[str, Any]:
    if around.request.is_planning:
        order = "Call `plan` with the todos"
    else:
        order = "Go on with a call, or call `todo_done` if the work is done"
    return {"role": "user", "content": f"{why} {order}; to ask a person, call `defer`."}


def _rule(call: Call, around: Surroundings) -> None:
    """Write down what the policy says of a work call."""
    if call["error"] or not around.is_work(call):
        return
    ruling = around.door.rule(tool_call(around.request, call, arguments_of(call)))
    call["action"], call["reason"] = ruling.action.value, clean(ruling.reason)
