"""What the worker's own cycle costs in one step, beyond its model and its tools.

A step of two rounds, with two calls in the first, on a model and a door that take no time; the
past is that of a long task. It is measured from the request to the last event, LangGraph and its
saver included, and once more for a step that is interrupted, its blob included. Beside them stands
the same step in one loop of plain Python: the messages alone.
"""

import statistics
import time
from collections.abc import Callable
from typing import Final

from loopctl.calls import Action, Ruling, ToolCall, ToolResult, ToolSpec
from loopctl.domain import Goal, Task, TaskId
from loopctl.past import Past, Turn
from loopctl.steps import StepRequest
from loopctl.testing.steps import ScriptedDoor, StagedModel, calling
from loopctl.worker.graph.prompt import assemble
from loopctl.worker.work import run_step

NAME: Final = "one step inside the worker, model and tools aside / 15 ms"
LIMIT: Final = 1.0
LIMIT_S: Final = 0.015
STEPS: Final = 60
TOOL: Final = ToolSpec("bash", "Runs.", {"type": "object"})
REQUEST: Final = StepRequest(
    session_id="s",
    loop_iteration=20,
    step_goal="the todo",
    goal=Goal("the goal"),
    task=Task(id=TaskId("T1"), title="the task"),
    run_id="r1",
    past=Past(turns=tuple(Turn(number, "said " * 600) for number in range(1, 20))),
)


def run() -> dict[str, float]:
    """Return the ratio, and medians in seconds."""
    whole = _median(_step)
    interrupted = _median(lambda: _step(Action.APPROVE))
    return {
        "ratio": max(whole, interrupted) / LIMIT_S,
        "step": whole,
        "interrupted": interrupted,
        "messages alone": _median(lambda: assemble(REQUEST)),
    }


def _step(action: Action = Action.ALLOW) -> None:
    calls = [("bash", {"command": str(number)}) for number in range(2)]
    model = StagedModel([calling(*calls), calling(("todo_done", {"summary": "done"}))])
    door = ScriptedDoor({"bash": _answer}, {"bash": Ruling(action)})
    for _ in run_step(REQUEST, (TOOL,), door, model):
        pass


def _answer(call: ToolCall, approval: str | None) -> ToolResult:
    del call, approval
    return ToolResult("line\n" * 800)


def _median(work: Callable[[], object]) -> float:
    work()
    taken = []
    for _ in range(STEPS):
        began = time.perf_counter()
        work()
        taken.append(time.perf_counter() - began)
    return statistics.median(taken)
