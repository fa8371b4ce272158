"""Takes one step in a process of its own, on doors and models that live in files.

    python child.py FOLDER < JOB        the events are printed, one a line

The door's tools append their name to FOLDER/effects. With a ledger, results are kept in
FOLDER/ledger under the call's key, and no call is made twice.
"""

import base64
import json
import sqlite3
import sys
from contextlib import closing
from pathlib import Path
from typing import Any, TypedDict

from langgraph.checkpoint.sqlite import SqliteSaver
from langgraph.graph import StateGraph
from langgraph.types import Command, interrupt

from loopctl.calls import Action, ApprovalRequired, Ruling, ToolCall, ToolResult, ToolSpec, Waiting
from loopctl.domain import Goal, Task, TaskId
from loopctl.past import Past, Turn
from loopctl.steps import InterruptRequired, Resume, StepRequest
from loopctl.testing import StillClock
from loopctl.testing.steps import ScriptedDoor, StagedModel, calling
from loopctl.worker.work import run_step

NAMES = ("write_a", "push_b", "write_c")
BATCH = tuple((name, {"n": number}) for number, name in enumerate(NAMES))
APPROVAL = "token"


class FileDoor(ScriptedDoor):
    def __init__(self, folder: Path, *, has_ledger: bool) -> None:
        super().__init__(rulings={"push_b": Ruling(Action.APPROVE, "it leaves")})
        self.effects = folder / "effects"
        self.ledger = folder / "ledger" if has_ledger else None

    def call(self, call: ToolCall, approval: str | None = None) -> ToolResult | Waiting:
        found = self.ledger / call.key if self.ledger is not None else None
        if found is not None and found.exists():
            return ToolResult(found.read_text(), replayed=True)
        if call.tool == "push_b" and approval != APPROVAL:
            return ApprovalRequired(call, "it leaves")
        with self.effects.open("a") as file:
            file.write(f"{call.tool}\n")
        if found is not None:
            found.parent.mkdir(exist_ok=True)
            found.write_text(call.tool)
        return ToolResult(call.tool)


class NaiveState(TypedDict):
    done: list[str]


def naive(door: FileDoor, blob: bytes) -> bytes:
    """Take the step as one node with a loop and an interrupt inside."""

    def execute_tools(state: NaiveState) -> NaiveState:
        done = list(state["done"])
        for ordinal, (name, arguments) in enumerate(BATCH):
            call = ToolCall("s", 1, ordinal, name, arguments)
            approval = None
            if door.rule(call).action is Action.APPROVE:
                approval = interrupt({"call": name})
            door.call(call, approval)
            done.append(name)
        return {"done": done}

    graph = StateGraph(NaiveState)
    graph.add_node(execute_tools)
    graph.set_entry_point("execute_tools")
    with closing(sqlite3.connect(":memory:", check_same_thread=False)) as connection:
        if blob:
            connection.deserialize(blob)
        compiled = graph.compile(checkpointer=SqliteSaver(connection))
        start: Any = Command(resume=APPROVAL) if blob else {"done": []}
        compiled.invoke(start, {"configurable": {"thread_id": "s"}}, durability="exit")
        return connection.serialize()


def request_of(job: dict[str, Any]) -> StepRequest:
    resume = None
    if job.get("blob"):
        blob = base64.b64decode(job["blob"])
        resume = Resume(blob, (), job["call_id"], is_allowed=True, answer="ok", approval=APPROVAL)
    return StepRequest(
        session_id="s",
        loop_iteration=job.get("iteration", 1),
        step_goal=job.get("step_goal", "do it"),
        goal=Goal("the goal"),
        task=Task(id=TaskId("T1"), title="the task"),
        run_id="r1",
        past=Past(turns=tuple(Turn(*turn) for turn in job.get("turns", ()))),
        resume=resume,
    )


def taken(job: dict[str, Any], folder: Path) -> dict[str, Any]:
    """Return what a step came to: its events in words, what it asked for, and its blob."""
    door = FileDoor(folder, has_ledger=job["has_ledger"])
    if job.get("is_naive"):
        blob = naive(door, base64.b64decode(job.get("blob", "")))
        return {"events": [], "blob": base64.b64encode(blob).decode()}
    model = StagedModel([calling(*calls, text="Now.") for calls in job["script"]])
    specs = tuple(ToolSpec(name, name, {"type": "object"}) for name in NAMES)
    events = list(run_step(request_of(job), specs, door, model, StillClock()))
    found = [event for event in events if isinstance(event, InterruptRequired)]
    return {
        "events": [repr(event) for event in events if event not in found],
        "asked": [asked.text for asked in model.asked],
        "blob": base64.b64encode(found[0].blob).decode() if found else "",
        "call_id": found[0].tool_call_id if found else None,
    }


if __name__ == "__main__":
    print(json.dumps(taken(json.load(sys.stdin), Path(sys.argv[1]))))
