"""The graph of one step: assemble, call_llm, parse, then run for each call, and ingest.

A node says itself what comes after it: a conditional edge would read the whole state once more for
each super-step.
"""

from collections.abc import Callable
from functools import cache
from typing import Any, Final, Protocol, cast

from langgraph.checkpoint.base import BaseCheckpointSaver
from langgraph.graph import START, StateGraph
from langgraph.graph.state import CompiledStateGraph
from langgraph.runtime import Runtime
from langgraph.types import Command

from loopctl.worker.graph.asking import assemble_request, call_llm, parse
from loopctl.worker.graph.calling import current, gate, ingest, is_held, run_call, started
from loopctl.worker.graph.control import NAMES
from loopctl.worker.graph.state import State, Surroundings

Cycle = CompiledStateGraph[State, Surroundings, State, State]

_Node = Callable[[State, Runtime[Surroundings]], dict[str, Any]]
_Route = Callable[[State, Surroundings], str]

_ASSEMBLE: Final = "assemble"
_CALL_LLM: Final = "call_llm"
_PARSE: Final = "parse"
_GATE: Final = "gate"
_RUN: Final = "run"
_INGEST: Final = "ingest"


def compiled(saver: BaseCheckpointSaver[str]) -> Cycle:
    """Return the graph with the saver of one step; it is compiled once for the process.

    Compiling takes as long as several super-steps, since it looks into the code of every node.
    """
    return _compiled().copy(update={"checkpointer": saver})


@cache
def _compiled() -> Cycle:
    graph = StateGraph(State, context_schema=Surroundings)
    graph.add_node(_ASSEMBLE, assemble_request)
    graph.add_node(
        _CALL_LLM, _going(call_llm, _after_reply), destinations=(_ASSEMBLE, _PARSE, _INGEST)
    )
    graph.add_node(_PARSE, _going(parse, _next), destinations=(_GATE, _RUN, _CALL_LLM, _INGEST))
    graph.add_node(_GATE, gate)
    graph.add_node(_RUN, _going(run_call, _next), destinations=(_GATE, _RUN, _CALL_LLM, _INGEST))
    graph.add_node(_INGEST, ingest)
    graph.add_edge(START, _ASSEMBLE)
    graph.add_edge(_ASSEMBLE, _CALL_LLM)
    graph.add_edge(_GATE, _RUN)
    graph.set_finish_point(_INGEST)
    return graph.compile()


class _Going(Protocol):
    """A node that says what comes next; the library looks for these names."""

    def __call__(self, state: State, runtime: Runtime[Surroundings]) -> Command[str]:
        """Return the update, and the node that follows."""
        ...


def _going(node: _Node, route: _Route) -> _Going:
    def gone(state: State, runtime: Runtime[Surroundings]) -> Command[str]:
        update = node(state, runtime)
        # What adds up is not added here, and no route looks at it.
        after = cast("State", {**state, **update})
        return Command(update=update, goto=route(after, runtime.context))

    return gone


def _after_reply(state: State, around: Surroundings) -> str:
    del around
    if state["end"]:
        return _INGEST
    return _PARSE if state["reply"] else _ASSEMBLE


def _next(state: State, around: Surroundings) -> str:
    """Return what follows: the next call, the model again, or the end.

    The gate is there for what a person has to decide; a call that nobody is asked about is told
    of at once, and made in the next super-step.
    """
    if state["end"]:
        return _INGEST
    if state["cursor"] >= len(state["calls"]):
        return _CALL_LLM
    call = current(state)
    if call["error"] or call["tool"] in NAMES or around.done_of(call) is not None:
        return _RUN
    if is_held(state, around):
        return _GATE
    started(call, around)
    return _RUN
