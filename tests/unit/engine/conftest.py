from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from datetime import timedelta
from typing import Any

import pytest

from loopctl.calls import ToolCall, ToolResult
from loopctl.domain import Goal, Kind, Task, TaskId
from loopctl.engine.taskrun import RunContext, Start, TaskRun
from loopctl.engine.work import Ended, Tools
from loopctl.events import AnyEvent
from loopctl.settings import Settings
from loopctl.testing import (
    MemoryBrain,
    MemoryEventLog,
    MemoryRepository,
    MemorySessions,
    ScriptedGate,
    ScriptedStep,
    ScriptedWorker,
    StillClock,
)


class MemoryCalls:
    """The port ``CallDecisions``: remembers what it was told."""

    def __init__(self) -> None:
        self.granted: dict[str, ToolCall] = {}
        self.settled: dict[str, tuple[str, ToolResult | None]] = {}

    def grant(self, decision_id: str, call: ToolCall, lifetime: timedelta) -> str:
        del lifetime
        self.granted[decision_id] = call
        return f"token for {decision_id}"

    def settle(self, decision_id: str, key: str, result: ToolResult | None) -> bool:
        return self.settled.setdefault(decision_id, (key, result)) == (key, result)


@dataclass
class Bench:
    """An engine on doubles: one task, a scripted worker, a scripted gate.

    Attributes:
        more: What else the plan loops share.
    """

    gate: ScriptedGate
    repository: MemoryRepository
    sessions: MemorySessions
    log: MemoryEventLog
    clock: StillClock
    brain: MemoryBrain
    settings: Settings
    calls: MemoryCalls
    more: dict[str, Any] = field(default_factory=dict)
    goal: Goal = field(default_factory=lambda: Goal(text="the goal"))

    def tools(self) -> Tools:
        return Tools(
            gate=self.gate,
            repository=self.repository,
            sessions=self.sessions,
            calls=self.calls,
            brain=self.brain,
            clock=self.clock,
            emit=self.log.emit,
            describe=lambda result: f"gate: {result.checks[-1].reason}",
            **self.more,
        )

    def context(self, worker: ScriptedWorker) -> RunContext:
        return RunContext(
            run_id="r1",
            goal=self.goal,
            settings=self.settings,
            tools=self.tools(),
            workers={"command": worker, "graph": worker},
        )

    def run(self, worker: ScriptedWorker, task: Task, start: Start | None = None) -> Ended:
        head = self.repository.head()
        return TaskRun(self.context(worker), task, start or Start(head=head)).run()

    def types(self) -> list[str]:
        return [event.type for event in self.log.events]

    def of(self, type_: str) -> Sequence[AnyEvent]:
        return [event for event in self.log.events if event.type == type_]


@pytest.fixture
def bench() -> Bench:
    return Bench(
        gate=ScriptedGate(),
        repository=MemoryRepository(),
        sessions=MemorySessions(),
        log=MemoryEventLog(),
        clock=StillClock(),
        brain=MemoryBrain("the goal"),
        settings=Settings(),
        calls=MemoryCalls(),
    )


@pytest.fixture
def task() -> Callable[..., Task]:
    def make(task_id: str = "T1", **keys: object) -> Task:
        fields: dict[str, object] = {
            "title": f"Title of {task_id}",
            "worker": "command",
            "kind": Kind.CODE,
            "verify_cmd": "true",
            **keys,
        }
        return Task(id=TaskId(task_id), **fields)  # type: ignore[arg-type]

    return make


@pytest.fixture
def worker(bench: Bench) -> Callable[..., ScriptedWorker]:
    def make(*steps: ScriptedStep) -> ScriptedWorker:
        return ScriptedWorker(steps, clock=bench.clock)

    return make
