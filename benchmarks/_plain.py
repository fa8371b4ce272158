"""What a step costs without this project: the same calls in plain LangGraph, instant as well.

One node asks, one makes the calls, as the library's own pages put an agent; messages add up in the
state, and a saver in memory keeps each super-step.
"""

import operator
from collections.abc import Callable
from itertools import count
from typing import Annotated, Any, TypedDict

from langgraph.checkpoint.memory import InMemorySaver
from langgraph.graph import END, START, StateGraph

Chat = dict[str, Any]


class _State(TypedDict):
    messages: Annotated[list[Chat], operator.add]


def step(past: list[Chat], replies: list[Chat], result: str) -> Callable[[], None]:
    """Return what takes one step.

    Args:
        past: The messages with which each step begins.
        replies: What the model says, in order; each ``tool_calls`` of it gets ``result``.
        result: What a call says.
    """
    graph = StateGraph(_State)
    left: list[Chat] = []

    def ask(state: _State) -> Chat:
        del state
        return {"messages": [left.pop(0)]}

    def call(state: _State) -> Chat:
        calls = state["messages"][-1]["tool_calls"]
        said = [{"role": "tool", "tool_call_id": one["id"], "content": result} for one in calls]
        return {"messages": said}

    graph.add_node("ask", ask)
    graph.add_node("call", call)
    graph.add_edge(START, "ask")
    graph.add_edge("ask", "call")
    graph.add_conditional_edges("call", lambda _: "ask" if left else END, ["ask", END])
    compiled = graph.compile(InMemorySaver())
    numbers = count()

    def taken() -> None:
        left.extend(replies)
        compiled.invoke({"messages": past}, {"configurable": {"thread_id": str(next(numbers))}})

    return taken
