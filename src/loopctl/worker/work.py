"""One step inside the worker's process: the request in, the events out, nothing kept.

Only the worker's process imports this, since it loads LangGraph.
"""

import sqlite3
from collections.abc import Generator, Iterator
from contextlib import closing
from typing import Any, Final, cast

from langchain_core.runnables import RunnableConfig
from langgraph.types import Command

from loopctl.calls import ApprovalRequired, OutcomeUnknown, ToolSpec, Waiting, call_key
from loopctl.clock import Clock, SystemClock
from loopctl.domain import DecisionKind
from loopctl.steps import StepEvent, StepRequest, interrupt_for
from loopctl.worker.door import Door
from loopctl.worker.graph import story
from loopctl.worker.graph.blob import freeze, thaw
from loopctl.worker.graph.cycle import compiled
from loopctl.worker.graph.replies import arguments_of
from loopctl.worker.graph.saver import LateSaver
from loopctl.worker.graph.state import State, Surroundings, first_state, tool_call
from loopctl.worker.model.reply import Model

_CONFIG: Final[RunnableConfig] = {
    "configurable": {"thread_id": "step"},
    # Of super-steps: the step's own limits come long before.
    "recursion_limit": 100_000,
}


def run_step(
    request: StepRequest,
    specs: tuple[ToolSpec, ...],
    door: Door,
    model: Model,
    clock: Clock | None = None,
) -> Iterator[StepEvent]:
    """Yield what happened in one step, as it happens; exactly one ``WorkerProgress`` comes last.

    A call is made only after its ``ToolCallStarted`` was taken; who stops taking stops the step.

    Args:
        request: The step; nothing else is known of its task.
        specs: The work tools behind the door.
        door: The only way out; its calls and the model's are made in this thread.
        model: Asked for every reply that the request does not bring along.
        clock: For the task's limit of time.

    Raises:
        CancelledError: The run was asked to stop.
        ValueError: A reply that was kept cannot be read.
    """
    clock = clock or SystemClock()
    around = Surroundings(request, specs, door, model, clock, began=clock.monotonic())
    # LangGraph's saver may write from a thread of its own; it has a lock.
    with closing(sqlite3.connect(":memory:", check_same_thread=False)) as connection:
        resume = request.resume
        if resume is not None and resume.blob:
            key = call_key(request.session_id, request.loop_iteration, resume.call_id)
            around.is_thawed = thaw(connection, resume.blob, key)
        yield from _cycled(around, connection)


def _cycled(around: Surroundings, connection: sqlite3.Connection) -> Iterator[StepEvent]:
    saver = LateSaver(connection, is_filled=around.is_thawed)
    graph = compiled(saver)
    updates = graph.stream(
        Command(resume=True) if around.is_thawed else first_state(around.request),
        _CONFIG,
        context=around,
        stream_mode="updates",
        durability="exit",
    )
    held: dict[str, Any] | None = None
    with closing(cast("Generator[dict[str, Any], None, None]", updates)) as stream:
        for update in stream:
            yield from around.drain()
            if "__interrupt__" in update:
                held = update["__interrupt__"][0].value
    yield from around.drain()
    if held is not None:
        saver.flush()
        waiting = _waiting(around, held)
        yield interrupt_for(waiting, freeze(connection, waiting.call.key))
        yield story.progress(cast("State", graph.get_state(_CONFIG).values))


def _waiting(around: Surroundings, held: dict[str, Any]) -> Waiting:
    call = tool_call(around.request, held["call"], arguments_of(held["call"]))
    if held["kind"] == DecisionKind.OUTCOME.value:
        return OutcomeUnknown(call, held["since"])
    return ApprovalRequired(call, held["reason"])
