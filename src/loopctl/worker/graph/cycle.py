"""The graph of one step: assemble, call_llm, parse, then gate and run for each call, and ingest."""

from functools import cache
from typing import Final

from langgraph.checkpoint.base import BaseCheckpointSaver
from langgraph.graph import START, StateGraph
from langgraph.graph.state import CompiledStateGraph

from loopctl.worker.graph.asking import assemble_request, call_llm, parse
from loopctl.worker.graph.calling import current, gate, ingest, run_call
from loopctl.worker.graph.control import NAMES
from loopctl.worker.graph.state import State, Surroundings

Cycle = CompiledStateGraph[State, Surroundings, State, State]

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
    graph.add_node(_CALL_LLM, call_llm)
    graph.add_node(_PARSE, parse)
    graph.add_node(_GATE, gate)
    graph.add_node(_RUN, run_call)
    graph.add_node(_INGEST, ingest)
    graph.add_edge(START, _ASSEMBLE)
    graph.add_edge(_ASSEMBLE, _CALL_LLM)
    graph.add_conditional_edges(_CALL_LLM, _after_reply, [_ASSEMBLE, _PARSE, _INGEST])
    graph.add_conditional_edges(_PARSE, _next, [_GATE, _RUN, _CALL_LLM, _INGEST])
    graph.add_edge(_GATE, _RUN)
    graph.add_conditional_edges(_RUN, _next, [_GATE, _RUN, _CALL_LLM, _INGEST])
    graph.set_finish_point(_INGEST)
    return graph.compile()


def _after_reply(state: State) -> str:
    if state["end"]:
        return _INGEST
    return _PARSE if state["reply"] else _ASSEMBLE


def _next(state: State) -> str:
    """Return what follows: the next call, the model again, or the end."""
    if state["end"]:
        return _INGEST
    if state["cursor"] >= len(state["calls"]):
        return _CALL_LLM
    call = current(state)
    is_gated = not call["error"] and call["tool"] not in NAMES
    return _GATE if is_gated else _RUN
