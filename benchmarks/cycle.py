"""What the worker's own cycle costs in one step, beyond its model and its tools; others beside it.

A step of two rounds, with two calls in the first, on a model and a door that take no time; the
past is that of a long task. It is measured from the request to the last event, LangGraph and its
saver included, and once more for a step that is interrupted, its blob included. Beside them stand,
with the same messages, calls and results in the same run: plain LangGraph, mini-swe-agent (in an
environment of its own, made at the first time; it needs the package index), and the messages alone.
"""

import json
import statistics
import subprocess
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import Any, Final

from benchmarks import _minisweagent, _plain, _venv
from loopctl.calls import Action, Ruling, ToolCall, ToolResult, ToolSpec
from loopctl.domain import Goal, Task, TaskId
from loopctl.past import Past, Turn
from loopctl.steps import StepRequest
from loopctl.testing.steps import ScriptedDoor, calling
from loopctl.worker.graph.prompt import assemble
from loopctl.worker.model.reply import Reply
from loopctl.worker.work import run_step

NAME: Final = "one step inside the worker, model and tools aside / 15 ms"
LIMIT: Final = 1.0
LIMIT_S: Final = 0.015
STEPS: Final = 60
MINI_SWE_AGENT: Final = "mini-swe-agent==2.4.6"
RESULT: Final = "line\n" * 800
CALLS: Final = (
    (("bash", {"command": "0"}), ("bash", {"command": "1"})),
    (("todo_done", {"summary": "done"}),),
)
"""Of each reply."""

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
    """Return the ratio, medians in seconds, and how they stand to each other.

    What is compared is taken in turns, one after the other in each round, so that a machine that
    is busy for a while is busy for all.
    """
    ours: list[Callable[[], object]] = [_step, partial(_step, Action.APPROVE)]
    beside: list[Callable[[], object]] = [
        _plain.step(_past(), _replies(), RESULT),
        partial(assemble, REQUEST),
    ]
    with _mini_swe_agent() as mini_step:
        works = [*map(_timed, (*ours, *beside)), mini_step]
        whole, interrupted, plain, messages, mini = _medians(works)
    return {
        "ratio": max(whole, interrupted) / LIMIT_S,
        "step": whole,
        "interrupted": interrupted,
        "plain LangGraph": plain,
        "step / plain LangGraph": whole / plain,
        "mini-swe-agent": mini,
        "step / mini-swe-agent": whole / mini,
        "messages alone": messages,
    }


def _step(action: Action = Action.ALLOW) -> None:
    model = Instant([calling(*calls) for calls in CALLS])
    door = ScriptedDoor({"bash": _answer}, {"bash": Ruling(action)})
    for _ in run_step(REQUEST, (TOOL,), door, model):
        pass


class Instant:
    """The port ``Model``, which takes no time: it says what it was told to, in order."""

    def __init__(self, script: Sequence[Reply]) -> None:
        self._script = iter(script)

    def complete(self, *_request: object, **_more: object) -> Reply:
        """Return the next reply."""
        return next(self._script)


def _answer(call: ToolCall, approval: str | None) -> ToolResult:
    del call, approval
    return ToolResult(RESULT)


def _past() -> list[dict[str, Any]]:
    return assemble(REQUEST)


def _replies() -> list[dict[str, Any]]:
    """Return the same replies as messages of a chat."""
    return [
        {"role": "assistant", "content": "", "tool_calls": [_as_sent(*one) for one in calls]}
        for calls in CALLS
    ]


def _as_sent(name: str, arguments: dict[str, str]) -> dict[str, Any]:
    function = {"name": name, "arguments": json.dumps(arguments)}
    return {"id": f"{name} {arguments}", "type": "function", "function": function}


@contextmanager
def _mini_swe_agent() -> Iterator[Callable[[], float]]:
    """Have the agent's own interpreter at hand; what is yielded has it take one step."""
    given = {"past": _past(), "replies": _replies(), "result": RESULT}
    python = _venv.python_with(MINI_SWE_AGENT)
    with tempfile.TemporaryDirectory() as name:
        file = Path(name) / "given.json"
        file.write_text(json.dumps(given), encoding="utf-8")
        env = {"HOME": name, "MSWEA_SILENT_STARTUP": "1", "MSWEA_GLOBAL_CONFIG_DIR": name}
        with subprocess.Popen(
            [python, _minisweagent.__file__, file],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            env=env,
            text=True,
        ) as process:
            yield partial(_asked, process)
            process.communicate()


def _asked(process: "subprocess.Popen[str]") -> float:
    assert process.stdin is not None
    assert process.stdout is not None
    process.stdin.write("\n")
    process.stdin.flush()
    return float(process.stdout.readline())


def _timed(work: Callable[[], object]) -> Callable[[], float]:
    def timed() -> float:
        began = time.perf_counter()
        work()
        return time.perf_counter() - began

    return timed


def _medians(works: Sequence[Callable[[], float]]) -> list[float]:
    rounds = [[work() for work in works] for _ in range(STEPS + 1)]
    return [statistics.median(taken) for taken in zip(*rounds[1:], strict=True)]
