"""The nodes that make the calls, one for each super-step: gate, run, and ingest at the end.

LangGraph takes a node again from its top when it goes on after an interrupt. So the gate does
nothing before it asks for one, and each call has a super-step of its own: what has run is in the
saved state and is not run again.
"""

from typing import Any

from langgraph.runtime import Runtime
from langgraph.types import interrupt

from loopctl.calls import Action, OutcomeUnknown, ToolResult, Waiting
from loopctl.domain import DecisionKind
from loopctl.fencing import clean, fence
from loopctl.steps import PlanProposed, ToolCallFinished, ToolCallStarted
from loopctl.worker.graph import control, story
from loopctl.worker.graph.ends import End, ended_by_limit
from loopctl.worker.graph.prompt import assemble, turn_bytes
from loopctl.worker.graph.replies import arguments_of
from loopctl.worker.graph.state import Call, State, Surroundings, tool_call

_Update = dict[str, Any]
_Around = Runtime[Surroundings]


def gate(state: State, runtime: _Around) -> _Update:
    """Wait for a person where the next call needs one; then say that it is made."""
    around = runtime.context
    call = current(state)
    if around.done_of(call) is not None:
        return {"waiting": None}
    why = state["waiting"] or _ruled(call, around)
    if why is not None:
        interrupt({**why, "call": call})
    started(call, around)
    return {"waiting": None}


def is_held(state: State, around: Surroundings) -> bool:
    """Return whether the next call has to wait for a person."""
    return state["waiting"] is not None or _ruled(current(state), around) is not None


def started(call: Call, around: Surroundings) -> None:
    """Tell that a call is made next."""
    made = tool_call(around.request, call, arguments_of(call))
    around.events.append(ToolCallStarted(call["ordinal"], call["tool"], made.arguments_hash))


def run_call(state: State, runtime: _Around) -> _Update:
    """Make the next call, or answer for it where it is not to be made."""
    around = runtime.context
    call = current(state)
    if call["error"]:
        return _answered(state, call, around, ToolResult(call["error"], is_error=True))
    if not around.is_work(call):
        return _controlled(state, call, around)
    done = around.done_of(call)
    if done is not None:
        return _answered(state, call, around, ToolResult(done.content, done.is_error))
    came = _made(call, around)
    if not isinstance(came, ToolResult):
        return {"waiting": _waiting(came)}
    around.events.append(
        ToolCallFinished(call["ordinal"], call["tool"], came.content, came.is_error)
    )
    return _answered(state, call, around, came)


def ingest(state: State, runtime: _Around) -> _Update:
    """Tell what the step as a whole came to."""
    events = runtime.context.events
    if state["proposed"] is not None:
        events.append(PlanProposed(tuple(state["proposed"])))
    turn = story.turn(state, _turn_bytes(runtime.context))
    if turn is not None:
        events.append(turn)
    events.append(story.progress(state))
    return {"end": state["end"]}


def _turn_bytes(around: Surroundings) -> int:
    messages = around.prompts.get(0) or assemble(around.request, 0, around.offered_bytes)
    return turn_bytes(messages, around.offered_bytes)


def current(state: State) -> Call:
    """Return the call that is next."""
    return state["calls"][state["cursor"]]


def _ruled(call: Call, around: Surroundings) -> dict[str, str] | None:
    """Return why the policy wants a person to decide, where nobody has decided yet."""
    if call["action"] != Action.APPROVE.value:
        return None
    if not around.is_thawed and around.resume_of(call) is not None:
        return None
    return {"kind": DecisionKind.APPROVAL.value, "reason": call["reason"], "since": ""}


def _waiting(came: Waiting) -> dict[str, str]:
    if isinstance(came, OutcomeUnknown):
        return {"kind": DecisionKind.OUTCOME.value, "reason": "", "since": came.since}
    return {"kind": DecisionKind.APPROVAL.value, "reason": clean(came.reason), "since": ""}


def _made(call: Call, around: Surroundings) -> ToolResult | Waiting:
    if call["action"] == Action.DENY.value:
        return ToolResult(f"{call['tool']} was denied: {call['reason']}", is_error=True)
    resume = around.resume_of(call)
    if resume is not None and not resume.is_allowed:
        words = f": {resume.answer}" if resume.answer else ""
        refused = f"{call['tool']} was not made, since a person did not allow it{words}"
        return ToolResult(clean(refused), is_error=True)
    approval = resume.approval if resume is not None else None
    return around.door.call(tool_call(around.request, call, arguments_of(call)), approval)


def _controlled(state: State, call: Call, around: Surroundings) -> _Update:
    arguments = arguments_of(call)
    came = control.perform(call["tool"], arguments, is_planning=around.request.is_planning)
    if came.event is not None:
        around.events.append(came.event)
    update = _answered(state, call, around, ToolResult(came.text, came.is_error))
    if call["tool"] == control.PLAN:
        update["proposed"] = [clean(todo) for todo in arguments["todos"]]
    if came.ends:
        left = state["calls"][state["cursor"] + 1 :]
        update["story"] = [update["story"][0], *map(story.not_made, left)]
        update["end"] = End.CONTROL.value
        update["errored"] = update["errored"] or bool(left)
    return update


def _answered(state: State, call: Call, around: Surroundings, result: ToolResult) -> _Update:
    """Return the update with which a call has its result and the next one is at hand."""
    told = _told(call, around, result)
    update: _Update = {
        "cursor": state["cursor"] + 1,
        "thread": [{"role": "tool", "tool_call_id": call["id"], "content": told}],
        "story": [story.called(call, result.content, is_error=result.is_error)],
        "errored": state["errored"] or result.is_error,
        "made": [] if call["error"] else [[call["tool"], call["arguments"]]],
    }
    if update["cursor"] < len(state["calls"]):
        return update
    limit = ended_by_limit(state["replies"], state["wrong"], around)
    return update | limit | {"story": update["story"] + limit.get("story", [])}


def _told(call: Call, around: Surroundings, result: ToolResult) -> str:
    """Return a result as the model is shown it; what a tool says is data."""
    failed = "The call failed:\n" if result.is_error else ""
    if call["error"] or not around.is_work(call):
        return failed + clean(result.content)
    return failed + fence(result.content, f"result of {call['tool']}")
