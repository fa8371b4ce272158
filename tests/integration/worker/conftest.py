import json
import os
import sys
import threading
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest

from loopctl.calls import Action, Ruling, ToolCall, ToolResult, ToolSpec, Waiting
from loopctl.clock import SystemClock
from loopctl.domain import Goal, Sha, Task, TaskId, Usage
from loopctl.errors import CheckpointConflictError
from loopctl.moneyports import Cap, Claim, Refused, Reserved
from loopctl.ports import Sandbox
from loopctl.redaction import Redactor
from loopctl.sandbox.service import ProcessService
from loopctl.steps import StepEvent, StepRequest
from loopctl.testing import MemorySandbox
from loopctl.worker.host import GraphWorker
from loopctl.worker.link import ModelProcess
from loopctl.worker.oracle import ChildOracle

CHILD = Path(__file__).with_name("child.py")
KEY = "key-123"


@dataclass
class MemoryDesk:
    """The ports ``Desks`` and ``Desk``: every call is answered with its number."""

    specs: tuple[ToolSpec, ...] = (ToolSpec("look", "Looks.", {"type": "object"}),)
    calls: list[ToolCall] = field(default_factory=list)
    opened: list[tuple[str, str, str]] = field(default_factory=list)
    on_call: Callable[[ToolCall], ToolResult | Waiting | None] = lambda _call: None
    on_open: Callable[[], None] = lambda: None
    threads: set[int] = field(default_factory=set)

    def open(self, session_id: str, task: Task, candidate: str, sandbox: Sandbox) -> "MemoryDesk":
        del sandbox
        self.on_open()
        self.opened.append((session_id, task.id, candidate))
        return self

    def rule(self, call: ToolCall) -> Ruling:
        return Ruling(Action.DENY, f"never {call.tool}")

    def call(self, call: ToolCall, approval: str | None = None) -> ToolResult | Waiting:
        del approval
        self.calls.append(call)
        self.threads.add(threading.get_ident())
        return self.on_call(call) or ToolResult(f"seen {call.ordinal}")


@dataclass
class MemoryPurse:
    """The port ``Purse``: refuses where it was told to."""

    claims: list[Claim] = field(default_factory=list)
    settled: dict[int, Usage] = field(default_factory=dict)
    is_empty: bool = False

    def reserve(self, claim: Claim) -> Reserved | Refused:
        if self.is_empty:
            return Refused(Cap.TASK_TOKENS, "there is nothing left")
        self.claims.append(claim)
        return Reserved(len(self.claims))

    def settle(self, reservation: int, usage: Usage) -> None:
        self.settled.setdefault(reservation, usage)

    def spent(self, run_id: str, task: str | None = None) -> Usage:
        del run_id, task
        return sum(self.settled.values(), Usage())


@dataclass
class MemoryReplies:
    """The port ``ReplyStore``."""

    kept: dict[tuple[str, int], dict[int, str]] = field(default_factory=dict)

    def keep(self, session_id: str, iteration: int, number: int, reply: str) -> None:
        if self.kept.setdefault((session_id, iteration), {}).setdefault(number, reply) != reply:
            raise CheckpointConflictError(session_id, iteration)

    def replies(self, session_id: str, iteration: int, first: int = 0) -> tuple[str, ...]:
        kept = self.kept.get((session_id, iteration), {})
        return tuple(kept[number] for number in sorted(kept) if number >= first)


@dataclass
class House:
    """An engine's side with a real child, and doubles for what is behind it."""

    folder: Path
    argv: tuple[str, ...] = (sys.executable, "-P", str(CHILD))
    env: Mapping[str, str] = field(default_factory=lambda: {"PATH": os.environ["PATH"]})
    routes: str = "routes"
    desk: MemoryDesk = field(default_factory=MemoryDesk)
    purse: MemoryPurse = field(default_factory=MemoryPurse)
    replies: MemoryReplies = field(default_factory=MemoryReplies)
    cancel: threading.Event = field(default_factory=threading.Event)
    children: list[ProcessService] = field(default_factory=list)
    grace_s: float = 60.0
    sandbox: Sandbox = field(default_factory=lambda: MemorySandbox("room", Sha("c1"), "tree"))

    def __post_init__(self) -> None:
        self.process = ModelProcess(
            self._start,
            self.routes,
            clock=SystemClock(),
            cancel=self.cancel,
            redact=Redactor({"A_KEY": KEY}),
        )

    def _start(self) -> ProcessService:
        self.children.append(ProcessService(self.argv, cwd=self.folder, env=self.env))
        return self.children[-1]

    @property
    def worker(self) -> GraphWorker:
        return GraphWorker(
            self.process,
            self.desk,
            self.purse,
            self.replies,
            clock=SystemClock(),
            grace_s=self.grace_s,
        )

    @property
    def oracle(self) -> ChildOracle:
        return ChildOracle(
            self.process, self.purse, clock=SystemClock(), run_id="r1", is_there=True
        )

    def begin(self, *script: Any, **fields: Any) -> Iterator[StepEvent]:
        return self.worker.execute_step(self.request(*script, **fields), self.sandbox)

    def step(self, *script: Any, **fields: Any) -> list[StepEvent]:
        return list(self.begin(*script, **fields))

    def request(self, *script: Any, **fields: Any) -> StepRequest:
        chosen: dict[str, Any] = {
            "session_id": "s1",
            "loop_iteration": 1,
            "step_goal": json.dumps(script),
            "goal": Goal("g"),
            "task": Task(TaskId("T1"), "t"),
            "run_id": "r1",
            **fields,
        }
        return StepRequest(**chosen)


@pytest.fixture
def make(tmp_path: Path) -> Iterator[Callable[..., House]]:
    made: list[House] = []

    def house(**fields: Any) -> House:
        made.append(House(tmp_path, **fields))
        return made[-1]

    yield house
    for one in made:
        one.process.close()


@pytest.fixture
def house(make: Callable[..., House]) -> House:
    return make()
