"""Kill a task of model steps at every durable write in turn, drive on, and count what was paid.

The engine, the purse, the kept replies and the checkpoints are the real ones; the worker does with
them what one that asks a model does: put aside, ask, settle, keep, act.
"""

from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest

from loopctl import failpoints
from loopctl.calls import Ruling, ToolCall, ToolResult, ToolSpec
from loopctl.domain import Goal, Limits, RunStatus, Scope, Sha, Task, TaskId, Usage
from loopctl.engine.taskrun import RunContext, Start, TaskRun
from loopctl.engine.work import Ended, Tools
from loopctl.moneyports import Claim, Reserved
from loopctl.records import RunRecord
from loopctl.settings import Settings
from loopctl.steps import (
    PlanProposed,
    StepEvent,
    StepRequest,
    TodoDone,
    TurnTaken,
    UsageReported,
    WorkerProgress,
)
from loopctl.store.caps import RunCaps
from loopctl.store.stores import Stores
from loopctl.testing import (
    MemoryBrain,
    MemoryEventLog,
    MemoryRepository,
    ScriptedGate,
    StillClock,
)
from loopctl.testing.steps import calling
from loopctl.worker.model.reply import Reply
from loopctl.worker.work import run_step

READ = ToolSpec("read_file", "Reads.", {"type": "object"})
PRICE = Usage(10, 5, 0.01)
WORST = 20
REPLIES = 3
"""Of each of the three steps: one that plans, and one for each todo."""


class KilledError(BaseException):
    """The process is gone: nobody may catch this."""


class NoCalls:
    """The port ``CallDecisions``: nobody decides anything here."""

    def grant(self, decision_id: str, call: ToolCall, lifetime: timedelta) -> str:
        raise NotImplementedError

    def settle(self, decision_id: str, key: str, result: ToolResult | None) -> bool:
        raise NotImplementedError


class Asking:
    """The port ``Worker``: three replies a step, and what they say is what is done."""

    makes_plans = True

    def __init__(self, stores: Stores, asked: Counter[tuple[int, int]]) -> None:
        self.stores = stores
        self.purse = stores.purse(RunCaps())
        self.asked = asked

    def execute_step(self, request: StepRequest, sandbox: Any) -> Iterator[StepEvent]:
        words = []
        for place in range(REPLIES):
            if place < len(request.replies):
                reply = request.replies[place]
            else:
                reply = self.ask(request, request.first_reply + place)
            words.append(reply)
            yield UsageReported(PRICE)
        sandbox.restore(f"{sandbox.tree}+{'+'.join(words)}")
        yield TurnTaken(" ".join(words))
        yield PlanProposed(("one", "two")) if request.is_planning else TodoDone(words[-1])
        yield WorkerProgress(
            made_tool_calls=True, tool_calls_errored=False, response_delta_hash=words[-1]
        )

    def ask(self, request: StepRequest, number: int) -> str:
        claim = Claim("r1", request.task.id, "step", "m", WORST, 0.02, request.task.budget)
        taken = self.purse.reserve(claim)
        assert isinstance(taken, Reserved)
        self.asked[request.loop_iteration, number] += 1
        # No two answers of a model are the same.
        reply = f"{number}.{self.asked.total()}"
        self.purse.settle(taken.id, PRICE)
        self.stores.replies.keep(request.session_id, request.loop_iteration, number, reply)
        return reply


@dataclass
class Inside:
    """The ports ``Model`` and ``Door`` of one step: replies are paid for, and kept."""

    house: Asking
    request: StepRequest
    replies: int = 0

    def complete(self, *_request: Any, **_more: Any) -> Reply:
        number = self.request.first_reply + self.replies
        claim = Claim("r1", self.request.task.id, "step", "m", WORST, 0.02)
        taken = self.house.purse.reserve(claim)
        assert isinstance(taken, Reserved)
        self.house.asked[self.request.loop_iteration, number] += 1
        self.house.purse.settle(taken.id, PRICE)
        calls: tuple[tuple[str, Any], ...] = (("read_file", {"path": f"{number}"}),)
        if self.replies == REPLIES - 1:
            last = ("plan", {"todos": ["one", "two"]}), ("todo_done", {"summary": "done"})
            calls = last[:1] if self.request.is_planning else last[1:]
        # No two answers of a model are the same.
        return calling(*calls, text=f"{number}.{self.house.asked.total()}", usage=PRICE)

    def rule(self, call: ToolCall) -> Ruling:
        del call
        return Ruling()

    def call(self, call: ToolCall, approval: str | None = None) -> ToolResult:
        del approval
        return ToolResult(f"seen {call.arguments_json}")

    def keep_reply(self, number: int, reply: str) -> str:
        self.replies += 1
        request = self.request
        self.house.stores.replies.keep(request.session_id, request.loop_iteration, number, reply)
        return reply

    def reserve(self, claim: Claim) -> Reserved:
        raise NotImplementedError

    def settle(self, reservation: int, usage: Usage) -> None:
        raise NotImplementedError


class Cycling(Asking):
    """The same by the model worker's own cycle."""

    def execute_step(self, request: StepRequest, sandbox: Any) -> Iterator[StepEvent]:
        inside = Inside(self, request)
        for event in run_step(request, (READ,), inside, inside):
            if isinstance(event, TodoDone):
                sandbox.restore(f"{sandbox.tree}+{request.loop_iteration}")
            yield event


class House:
    """All that outlives a process: the files of the store, the repository, the model's log."""

    def __init__(self, folder: Path, worker: type[Asking] = Asking) -> None:
        self.folder = folder
        self.worker = worker
        self.repository = MemoryRepository()
        self.asked: Counter[tuple[int, int]] = Counter()
        with Stores(folder, StillClock()) as stores:
            stores.runs.create_run(
                RunRecord(
                    id="r1",
                    status=RunStatus.RUNNING,
                    goal="g",
                    base=Sha("c1"),
                    branch="b",
                    started="2026-01-02T03:04:05.000Z",
                    scope=Scope(),
                    settings_json="{}",
                    settings_hash="h",
                )
            )

    def drive(self) -> Ended:
        """One process: it works on the task from where the last one was."""
        with Stores(self.folder, StillClock()) as stores:
            tools = Tools(
                gate=AllPass(),
                repository=self.repository,
                sessions=stores.sessions,
                calls=NoCalls(),
                brain=MemoryBrain("g"),
                clock=StillClock(),
                emit=MemoryEventLog().emit,
                describe=lambda _result: "red",
                purse=stores.purse(RunCaps()),
                replies=stores.replies,
            )
            workers = {"graph": self.worker(stores, self.asked)}
            context = RunContext("r1", Goal("g"), Settings(), tools, workers)
            task = Task(TaskId("T1"), "One", worker="graph", budget=Limits(usd=9.0))
            return TaskRun(context, task, Start(Sha("c1"))).run()

    def spent(self) -> Usage:
        with Stores(self.folder, StillClock()) as stores:
            return stores.purse(RunCaps()).spent("r1")

    def left(self) -> dict[str, int]:
        """Return how many rows the store has of what must not pile up."""
        with Stores(self.folder, StillClock()) as stores:
            rows = stores.replies.replies("r1/T1/main", 1)
        return {"replies": len(rows)}


class AllPass(ScriptedGate):
    """A gate that everything passes."""

    def judge(self, candidate: Any) -> Any:
        self.passing = frozenset({candidate.tree})
        return super().judge(candidate)


@pytest.fixture
def killed_at(monkeypatch: pytest.MonkeyPatch) -> Callable[[int], list[str]]:
    """Arms the crash points: the process dies at the passage of that number; 0 is never."""

    def arm(number: int) -> list[str]:
        passed: list[str] = []

        def pass_by(name: str) -> None:
            passed.append(name)
            if len(passed) == number:
                raise KilledError(name)

        monkeypatch.setattr(failpoints, "_armed", pass_by)
        return passed

    return arm


def drive_on(house: House) -> Ended:
    try:
        return house.drive()
    except KilledError:
        return house.drive()


@pytest.fixture
def points(tmp_path: Path, killed_at: Callable[[int], list[str]]) -> list[str]:
    """Every passage of a crash point of an undisturbed drive."""
    undisturbed = House(new(tmp_path, "0"))
    passed = killed_at(0)
    assert undisturbed.drive().is_passed
    assert undisturbed.asked.total() == 3 * REPLIES
    names = {"purse.before_reserve", "purse.after_settle", "replies.before_keep"}
    assert names <= set(passed)
    return list(passed)


def test_kill_at_some_writes_costs_at_most_the_call_that_was_under_way(
    tmp_path: Path, killed_at: Callable[[int], list[str]], points: list[str]
) -> None:
    assert sweep(tmp_path, killed_at, points, range(1, len(points) + 1, 7)) == []


def test_kill_of_the_model_workers_own_cycle_counts_each_reply_once_in_the_plan_too(
    tmp_path: Path, killed_at: Callable[[int], list[str]]
) -> None:
    passed = killed_at(0)
    assert House(new(tmp_path, "0"), Cycling).drive().is_passed
    points = list(passed)
    kept = [number for number, name in enumerate(points, 1) if name.startswith("replies.")]
    assert len(kept) >= 3 * REPLIES
    numbers = [*kept, *(number + 1 for number in kept if number < len(points))]
    assert sweep(tmp_path, killed_at, points, sorted(numbers), Cycling) == []


@pytest.mark.slow
def test_kill_at_every_write_costs_at_most_the_call_that_was_under_way(
    tmp_path: Path, killed_at: Callable[[int], list[str]], points: list[str]
) -> None:
    assert sweep(tmp_path, killed_at, points, range(1, len(points) + 1)) == []


def sweep(
    folder: Path,
    killed_at: Callable[[int], list[str]],
    points: list[str],
    numbers: Sequence[int],
    worker: type[Asking] = Asking,
) -> list[str]:
    """Return what went otherwise than it should."""
    wrong = []
    for number in numbers:
        killed_at(0)
        house = House(new(folder, str(number)), worker)
        killed_at(number)
        ended = drive_on(house)
        killed_at(0)
        where = f"{number} ({points[number - 1]})"
        if not ended.is_passed or ended.plan.budget.loops_used != 2:
            wrong.append(f"{where}: {ended.stop}, {ended.plan.budget}")
        # Each reply that was kept is asked for once; only the one that was not is asked for again.
        if max(house.asked.values()) > 2 or house.asked.total() > 3 * REPLIES + 1:
            wrong.append(f"{where}: asked {house.asked}")
        # A call that nobody settled counts at its worst, and nothing counts twice.
        spent, calls = house.spent(), house.asked.total()
        tokens = spent.prompt_tokens + spent.completion_tokens
        if not 15 * calls <= tokens <= 15 * calls + WORST:
            wrong.append(f"{where}: {calls} calls and {spent}")
        if house.left() != {"replies": 0}:
            wrong.append(f"{where}: {house.left()}")
        # What the plan has counted is what its own steps have cost.
        if ended.plan.budget.tokens_used != 15 * 3 * REPLIES:
            wrong.append(f"{where}: {ended.plan.budget.tokens_used} tokens in the plan")
    return wrong


def new(folder: Path, name: str) -> Path:
    (folder / name).mkdir()
    return folder / name
