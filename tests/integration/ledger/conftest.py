"""A ledger on a real database, tools whose effects are counted, and processes that die."""

import os
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest

from loopctl import failpoints
from loopctl.calls import Effect, Outcome, Ruling, ToolCall, ToolResult
from loopctl.domain import DecisionDraft, DecisionKind, RunStatus, Scope, Sha, TaskId
from loopctl.records import RunRecord, SessionRecord
from loopctl.sandbox.proxy import ToolProxy, allow_all
from loopctl.store.calls import SqliteCallDecisions
from loopctl.store.database import open_database
from loopctl.store.decisions import SqliteDecisions
from loopctl.store.ledger import SqliteLedger
from loopctl.store.owners import Owners
from loopctl.store.runs import SqliteRuns
from loopctl.store.sessions import SqliteSessions
from loopctl.testing import MemoryEventLog, StillClock


class Killed(BaseException):
    """Stands for SIGKILL inside this process."""


@dataclass
class Killer:
    """Kills at the count-th passage of a point; a killed process reaches nothing more."""

    name: str
    left: int
    is_dead: bool = False

    def __call__(self, name: str) -> None:
        self.left -= name == self.name
        self.is_dead = self.is_dead or self.left <= 0
        if self.is_dead:
            raise Killed(name)


@dataclass
class Sink:
    """A tool; its effects are keys in a list that outlives every process."""

    effect: Effect = Effect.OUTSIDE
    is_probeable: bool = False
    fails: BaseException | Outcome | None = None
    keys: list[str] = field(default_factory=list)
    probed: int = 0

    def run(self, arguments: Mapping[str, Any], idempotency_key: str) -> ToolResult | Outcome:
        if isinstance(self.fails, BaseException):
            raise self.fails
        if self.fails is Outcome.ABSENT:
            return self.fails
        self.keys.append(idempotency_key)
        return self.fails or ToolResult(f"did {dict(arguments)}")

    def probe(self, arguments: Mapping[str, Any], idempotency_key: str) -> ToolResult | Outcome:
        self.probed += 1
        if not self.is_probeable:
            return Outcome.UNKNOWN
        happened = idempotency_key in self.keys
        return ToolResult(f"did {dict(arguments)}") if happened else Outcome.ABSENT


class Process:
    """One process of the harness, with stores of its own over the one database."""

    def __init__(self, local: Path, clock: StillClock) -> None:
        self.database = open_database(local / "loop.db")
        self.owners = Owners(local / "owners")
        self.clock = clock
        self.ledger = SqliteLedger(self.database, clock, self.owners)
        self.calls = SqliteCallDecisions(self.database, clock)
        self.decisions = SqliteDecisions(self.database)
        self.sessions = SqliteSessions(self.database)
        self.runs = SqliteRuns(self.database)
        self.log = MemoryEventLog()

    def proxy(
        self,
        session: SessionRecord,
        tools: Mapping[str, Any],
        policy: Callable[[ToolCall], Ruling] = allow_all,
    ) -> ToolProxy:
        return ToolProxy(
            session, tools, self.ledger, clock=self.clock, emit=self.log.emit, policy=policy
        )

    def rows(self, sql: str) -> list[tuple[Any, ...]]:
        return [tuple(row) for row in self.database.rows(sql)]

    def die(self) -> None:
        """End as a killed process does: locks go, files and rows stay."""
        if self.owners._name:
            os.close(self.owners._file)
            self.owners._name = ""
        self.database.close()


class House:
    """The checkout's ``.local`` and all the processes that were ever opened on it."""

    def __init__(self, local: Path) -> None:
        self.local = local
        self.clock = StillClock()
        self.open: list[Process] = []
        process = self.process()
        process.runs.create_run(
            RunRecord(
                id="r1",
                status=RunStatus.RUNNING,
                goal="g",
                base=Sha("c1"),
                branch="loop/integration",
                started="2026-01-02T03:04:05.000Z",
                scope=Scope(),
                settings_json="{}",
                settings_hash="h",
            )
        )
        self.session = process.sessions.open_session("r1", TaskId("T1"), "main", Sha("c1"))
        process.die()

    def process(self) -> Process:
        made = Process(self.local, self.clock)
        self.open.append(made)
        return made

    def call(
        self, ordinal: int = 0, tool: str = "send", iteration: int = 1, **args: Any
    ) -> ToolCall:
        return ToolCall(self.session.id, iteration, ordinal, tool, args)

    def ask(self, process: Process, kind: DecisionKind, call: ToolCall) -> str:
        """Raise a decision about a call and return its id."""
        draft = DecisionDraft(kind, f"{call.key}?", call_key=call.key)
        return process.decisions.raise_decision("r1", "T1", draft).id

    def close(self) -> None:
        for process in self.open:
            process.die()


@pytest.fixture
def house(tmp_path: Path) -> Iterator[House]:
    made = House(tmp_path)
    yield made
    made.close()


@pytest.fixture
def sink() -> Callable[..., Sink]:
    return Sink


@pytest.fixture
def kill_at(monkeypatch: pytest.MonkeyPatch) -> Callable[[str, int], type[Killed]]:
    """Make the process die at a point; returns what it dies of."""

    def arm(name: str, count: int = 1) -> type[Killed]:
        monkeypatch.setattr(failpoints, "_armed", Killer(name, count))
        return Killed

    return arm


@pytest.fixture
def revive(monkeypatch: pytest.MonkeyPatch) -> Callable[[], None]:
    return lambda: monkeypatch.setattr(failpoints, "_armed", None)


@pytest.fixture
def houses(tmp_path_factory: pytest.TempPathFactory) -> Callable[[], House]:
    """Makes a fresh house for each example of a property test."""
    return lambda: House(tmp_path_factory.mktemp("house"))
