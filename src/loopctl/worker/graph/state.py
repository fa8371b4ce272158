"""What one step remembers between the nodes of its cycle, and what surrounds it.

The state is what an interrupt saves: JSON values alone, no prompt, no key, no approval. What can
be had again from the request stands in the surroundings, which are made anew for each process.
"""

import json
import operator
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cached_property
from typing import Annotated, Any, TypedDict

from loopctl.calls import ToolCall, ToolSpec
from loopctl.clock import Clock
from loopctl.domain import Usage
from loopctl.plan import CallDone
from loopctl.steps import Resume, StepEvent, StepRequest
from loopctl.worker.door import Door
from loopctl.worker.graph import control
from loopctl.worker.model.reply import Model

PLANNING = frozenset({"read_file", "search"}) | (control.NAMES - {"todo_done"})
"""The tools that a planning step may call: of the work tools those that are known to read only."""


class Call(TypedDict):
    """One call of the reply that is being worked on.

    Attributes:
        ordinal: In the iteration; every call that a reply asks for has one, also a wrong one, so
            that the same reply always gives the same.
        id: By which it is echoed to the model.
        arguments: ASCII JSON of an object; empty where they are wrong.
        error: Why it cannot be made; empty where it can.
        action: The policy's word on it, and ``reason`` its reason.
        is_given_again: Its reply was kept before and not asked for now.
    """

    ordinal: int
    id: str
    tool: str
    arguments: str
    error: str
    action: str
    reason: str
    is_given_again: bool


class State(TypedDict):
    """Attributes.

    level: How far the request was shortened to fit the model's window.
    replies: Of the model so far.
    next_call: Ordinal of the next call.
    thread: What was said in this step, as messages to the model.
    story: The same in short, for people and later steps.
    answers: Of each reply the text and calls, without ids: for the hash of the answer.
    made: Of each call that was made its tool and arguments: for the hash of the calls.
    reply: The newest, as it is kept.
    calls: Of that reply.
    cursor: Index of the call that is next.
    waiting: Why the door wants a person to decide on that call first; ``None`` if it does not.
    proposed: The newest plan.
    reminded: A reply without a call was met with a reminder.
    wrong: Replies in a row in which nothing was right.
    errored: A call has failed.
    end: Why the step is at its end; empty while it is not.
    """

    level: int
    replies: int
    next_call: int
    thread: Annotated[list[dict[str, Any]], operator.add]
    story: Annotated[list[str], operator.add]
    answers: Annotated[list[Any], operator.add]
    made: Annotated[list[list[str]], operator.add]
    reply: dict[str, Any]
    calls: list[Call]
    cursor: int
    waiting: dict[str, str] | None
    proposed: list[str] | None
    reminded: bool
    wrong: int
    errored: bool
    end: str


def first_state(request: StepRequest) -> State:
    """Return the state in which a step begins."""
    return State(
        level=0,
        replies=0,
        next_call=request.first_call,
        thread=[],
        story=[],
        answers=[],
        made=[],
        reply={},
        calls=[],
        cursor=0,
        waiting=None,
        proposed=None,
        reminded=False,
        wrong=0,
        errored=False,
        end="",
    )


@dataclass
class Surroundings:
    """What a step's nodes work with: its request and the ways out of it.

    Attributes:
        is_thawed: The step goes on from the blob of its interrupt.
        events: That have happened and were not yielded yet.
        usage: Spent by this process in this step.
        began: Monotonic seconds.
    """

    request: StepRequest
    specs: tuple[ToolSpec, ...]
    door: Door
    model: Model
    clock: Clock
    is_thawed: bool = False
    events: list[StepEvent] = field(default_factory=list)
    usage: Usage = field(default_factory=Usage)
    began: float = 0.0
    prompts: dict[int, list[dict[str, Any]]] = field(default_factory=dict)
    """What goes before the step's own messages, by how far it is shortened."""

    def drain(self) -> list[StepEvent]:
        """Return the events that have not been yielded, and forget them."""
        events, self.events = self.events, []
        return events

    @cached_property
    def offered(self) -> Mapping[str, ToolSpec]:
        """The tools of this step by name, in the order in which the model is told of them.

        They are the same in planning as in every other step, since a provider's prompts begin
        with them; what planning must not call is refused when it is called.
        """
        work = [spec for spec in self.specs if spec.name not in control.NAMES]
        own = list(control.SPECS)
        if not self.request.step_goal:
            own = [spec for spec in own if spec.name != control.PLAN]
        return {spec.name: spec for spec in (*work, *own)}

    @cached_property
    def offered_bytes(self) -> int:
        """What the tools take of a request, about."""
        return sum(
            len(spec.name) + len(spec.description) + len(json.dumps(spec.parameters))
            for spec in self.offered.values()
        )

    def is_allowed(self, tool: str) -> bool:
        """Return whether ``tool``, which is offered, may be called in this step."""
        return not self.request.is_planning or tool in PLANNING

    def is_work(self, call: Call) -> bool:
        """Return whether ``call`` goes through the door; the others are the worker's own."""
        return call["tool"] not in control.NAMES

    def resume_of(self, call: Call) -> Resume | None:
        """Return what a person has decided about ``call``, where that is the one that waited.

        In a step that is taken again it is the same call only if its reply was kept: another
        sampling gives another call under the same ordinal, and nobody has decided about that.
        """
        resume = self.request.resume
        if resume is None or resume.call_id != call["ordinal"]:
            return None
        return resume if self.is_thawed or call["is_given_again"] else None

    def done_of(self, call: Call) -> CallDone | None:
        """Return the result that ``call`` had before, where its step is taken again."""
        resume = self.request.resume
        if resume is None or self.is_thawed or not call["is_given_again"]:
            return None
        known = {(done.call_id, done.tool): done for done in resume.done}
        return known.get((call["ordinal"], call["tool"]))

    def is_spent(self) -> bool:
        """Return whether the step has used up what its task may still spend."""
        budget, used = self.request.budget, self.usage
        tokens = budget.tokens_used + used.prompt_tokens + used.completion_tokens
        ms = budget.wall_ms + (self.clock.monotonic() - self.began) * 1000
        return (
            (budget.tokens_max is not None and tokens >= budget.tokens_max)
            or (budget.usd_max is not None and budget.usd_used + used.usd >= budget.usd_max)
            or (budget.wall_max_ms is not None and ms >= budget.wall_max_ms)
        )


def tool_call(request: StepRequest, call: Call, arguments: Mapping[str, Any]) -> ToolCall:
    """Return the call as the door takes it."""
    return ToolCall(
        request.session_id, request.loop_iteration, call["ordinal"], call["tool"], arguments
    )
