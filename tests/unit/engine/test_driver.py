import threading
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from loopctl.domain import (
    GOAL,
    REJECTED,
    DecisionDraft,
    DecisionKind,
    Limits,
    RunStatus,
    Scope,
    Sha,
    TaskStatus,
    Usage,
)
from loopctl.engine.anchor import Anchor
from loopctl.engine.board import Board
from loopctl.engine.driver import Driver
from loopctl.engine.landing import Landing
from loopctl.engine.run import Beginning, Run
from loopctl.engine.taskrun import RunContext
from loopctl.errors import CancelledError, MachineError, SandboxError
from loopctl.events import RunEnded
from loopctl.manifest.frontier import Frontier
from loopctl.manifest.toml import TomlManifest
from loopctl.moneyports import Cap, Claim, Refused, Reserved
from loopctl.records import RunRecord
from loopctl.report.fold import summarize
from loopctl.report.summary import to_document
from loopctl.steps import BudgetRefused, Deferred, OutputTail, StepEvent, TodoDone
from loopctl.store.caps import RunCaps
from loopctl.store.database import open_database
from loopctl.store.decisions import SqliteDecisions
from loopctl.store.purse import SqlitePurse
from loopctl.store.runs import SqliteRuns
from loopctl.testing import MemoryPurse, ScriptedStep, ScriptedWorker
from loopctl.verdict import Blame, Check, CheckResult, Verdict

DONE: tuple[StepEvent, ...] = (OutputTail(0, "ok"), TodoDone("did it"))


class ByTask(ScriptedWorker):
    """Plays the script of each task; ``good`` is what the gate passes."""

    def __init__(self, **scripts: Any) -> None:
        super().__init__([])
        self.scripts = scripts
        self.lock = threading.Lock()
        self.order: list[str] = []

    def execute_step(self, request: Any, sandbox: Any) -> Any:
        with self.lock:
            self.order.append(request.task.id)
        script = self.scripts.get(request.task.id, DONE)
        if isinstance(script, BaseException):
            raise script
        if callable(script):
            script = script(request)
        sandbox.restore("good" if script is DONE else "half")
        yield from script
        yield from ScriptedWorker([ScriptedStep(answer="x")]).execute_step(request, sandbox)


class Rig:
    """A driver on a real manifest file and a real store, with scripted workers."""

    def __init__(self, bench: Any, folder: Path, text: str) -> None:
        self.bench = bench
        self.path = folder / "ACTIVE.toml"
        self.path.write_text(text)
        self.file = TomlManifest(self.path, "tasks/ACTIVE.toml")
        self.cancel = threading.Event()
        self.faults: list[BaseException] = []
        bench.gate.passing = frozenset({"good"})
        self.database = open_database(folder / "loop.db")
        self.decisions = SqliteDecisions(self.database)
        self.record = RunRecord(
            id="r1",
            status=RunStatus.RUNNING,
            goal="the goal",
            base=Sha("c1"),
            branch="b",
            started="2026-01-02T03:04:05.000Z",
            scope=Scope(),
            settings_json="{}",
            settings_hash="h",
        )
        self.runs = SqliteRuns(self.database)
        self.runs.create_run(self.record)

    def drive(self, worker: ScriptedWorker, workable: Any = lambda _task: None) -> Driver:
        driver = self.parts(worker, workable)[-1]
        driver.drive()
        return driver

    def parts(
        self, worker: ScriptedWorker, workable: Any = lambda _task: None
    ) -> tuple[RunContext, Board, Landing, Driver]:
        manifest = self.file.load()
        context = self.bench.context(worker)
        board = Board(self.file, manifest, self.bench.log.emit)
        landing = Landing(context.tools, "r1", "b", Sha("c1"), self.bench.repository.branch)
        driver = Driver(
            context,
            board,
            landing,
            self.decisions,
            make_frontier=Frontier,
            workable=workable,
            cancel=self.cancel,
            report_fault=self.report,
        )
        return context, board, landing, driver

    def run(self, worker: ScriptedWorker) -> RunEnded:
        """Drive a whole run of this manifest to its end."""
        parts = self.parts(worker)
        run = Run(
            self.record,
            *parts,
            anchor=Anchor(parts[0].goal, self.bench.gate),
            runs=self.runs,
            decisions=self.decisions,
            cancel=self.cancel,
        )
        tasks = tuple((task.id, task.title) for task in self.file.load().tasks)
        return run.drive(Beginning(None, tasks, Scope()), lambda: None)

    def report(self, fault: BaseException) -> str:
        self.faults.append(fault)
        return "crash.txt"

    def statuses(self) -> dict[str, TaskStatus]:
        return {task.id: task.status for task in self.file.load().tasks}


def manifest(*tasks: str) -> str:
    return "".join(
        f'[[task]]\nid = "{name}"\ntitle = "{name}"\nworker = "command"\ncommand = "true"\n'
        f"deps = [{', '.join(repr(dep) for dep in deps)}]\n"
        for name, *deps in (task.split() for task in tasks)
    )


@pytest.fixture
def rig(bench: Any, tmp_path: Path) -> Iterator[Callable[[str], Rig]]:
    made: list[Rig] = []

    def make(text: str) -> Rig:
        made.append(Rig(bench, tmp_path, text))
        return made[-1]

    yield make
    for one in made:
        one.database.close()


DRAFT = DecisionDraft(DecisionKind.EXTERNAL, "Which?", "blue")
RED: tuple[StepEvent, ...] = (OutputTail(1, "red"),)


def test_chain_is_done_in_order_and_every_commit_builds_on_the_one_before(
    rig: Any, bench: Any
) -> None:
    worker = ByTask()
    one = rig(manifest("C B", "B A", "A"))
    one.drive(worker)
    assert worker.order == ["A", "B", "C"]
    assert set(one.statuses().values()) == {TaskStatus.DONE}
    landed = [event.task for event in bench.of("task_landed")]
    assert landed == ["A", "B", "C"]


def test_deferred_stuck_and_broken_tasks_stop_no_other(rig: Any, bench: Any) -> None:
    worker = ByTask(A=(Deferred(DRAFT),), B=RED, C=SandboxError("no space left"))
    one = rig(manifest("A", "B", "C", "D", "E A"))
    driver = one.drive(worker)
    assert one.statuses() == {
        "A": TaskStatus.NEEDS_HUMAN,
        "B": TaskStatus.STUCK,
        "C": TaskStatus.BLOCKED,
        "D": TaskStatus.DONE,
        "E": TaskStatus.TODO,
    }
    assert [decision.question for decision in one.decisions.decisions()] == ["Which?"]
    waits = {wait.task: wait.reason for wait in driver.waits()}
    assert "A" in waits["E"]
    assert not driver.is_failed
    assert "no space left" in bench.of("task_stopped")[2].reason


def test_bug_of_ours_breaks_its_task_alone_and_is_written_down(rig: Any) -> None:
    bug = ZeroDivisionError("bug")
    one = rig(manifest("A", "B"))
    driver = one.drive(ByTask(A=bug))
    assert one.statuses() == {"A": TaskStatus.BLOCKED, "B": TaskStatus.DONE}
    assert (driver.is_failed, one.faults) == (True, [bug])


def test_interrupted_task_is_given_back_and_nothing_new_is_claimed(rig: Any) -> None:
    one = rig(manifest("A", "B"))

    def stop(_request: Any) -> Any:
        one.cancel.set()
        raise CancelledError("stop")

    one.drive(ByTask(A=stop))
    assert one.statuses() == {"A": TaskStatus.TODO, "B": TaskStatus.TODO}


def test_task_without_a_worker_is_left_as_it_is_with_the_reason(rig: Any) -> None:
    one = rig(manifest("A", "B"))
    driver = one.drive(ByTask(), workable=lambda task: "no model" if task.id == "A" else None)
    assert one.statuses() == {"A": TaskStatus.TODO, "B": TaskStatus.DONE}
    assert [(wait.task, wait.reason) for wait in driver.waits()] == [("A", "no model")]


def test_edit_of_the_user_during_the_run_is_kept_and_followed(rig: Any) -> None:
    one = rig(manifest("A", "B", "C"))

    def edit(_request: Any) -> Any:
        text = one.path.read_text().replace('title = "C"', 'status = "abandoned"\ntitle = "C"')
        one.path.write_text("# mine\n" + text + manifest("D"))
        return DONE

    worker = ByTask(A=edit)
    one.drive(worker)
    assert worker.order == ["A", "B", "D"]
    assert one.path.read_text().startswith("# mine\n")
    assert one.statuses()["C"] is TaskStatus.ABANDONED


def test_status_is_held_back_while_the_file_does_not_parse_and_written_later(rig: Any) -> None:
    one = rig(manifest("A", "B"))
    good = one.path.read_text()

    def breaks(_request: Any) -> Any:
        one.path.write_text("[[task]\n")
        return DONE

    def mends(_request: Any) -> Any:
        assert one.path.read_text() == "[[task]\n"
        one.path.write_text(good)
        return DONE

    one.drive(ByTask(A=breaks, B=mends))
    assert one.statuses() == {"A": TaskStatus.DONE, "B": TaskStatus.DONE}


def test_status_of_a_task_that_was_taken_out_is_said_and_the_run_goes_on(
    rig: Any, bench: Any
) -> None:
    one = rig(manifest("A", "B"))

    def takes_out(_request: Any) -> Any:
        one.path.write_text(manifest("B"))
        return DONE

    one.drive(ByTask(A=takes_out))
    assert one.statuses() == {"B": TaskStatus.DONE}
    assert any("no longer in the manifest" in event.text for event in bench.of("noticed"))


def test_result_returned_by_its_landing_goes_on_in_the_same_session(rig: Any, bench: Any) -> None:
    one = rig(manifest("A"))
    fails = CheckResult(Check.VERIFY, Verdict.FAIL, Blame.INTRODUCED, reason="red on the head")
    passes = CheckResult(Check.VERIFY, Verdict.PASS)
    bench.gate.scripted = [passes, fails]
    worker = ByTask()
    driver_head = bench.repository.commit("moved", Sha("c1"), "moved by someone")

    class Moved(Landing):
        def __init__(self, *args: Any) -> None:
            super().__init__(*args)
            self._head = driver_head

    landing = Moved(bench.tools(), "r1", "b", Sha("c1"), None)
    board = Board(one.file, one.file.load(), bench.log.emit)
    context = bench.context(worker)
    bench.sessions.open_session("r1", "A", "main", Sha("c1"))
    driver = Driver(
        context,
        board,
        landing,
        one.decisions,
        make_frontier=Frontier,
        workable=lambda _task: None,
        cancel=one.cancel,
        report_fault=lambda _fault: "",
    )
    driver.drive()
    assert one.statuses() == {"A": TaskStatus.DONE}


def test_several_jobs_run_side_by_side_and_land_one_by_one(rig: Any, bench: Any) -> None:
    barrier = threading.Barrier(2, timeout=20)

    def meet(_request: Any) -> Any:
        barrier.wait()
        return DONE

    settings = bench.settings
    loop = settings.loop.model_copy(update={"jobs": 2})
    bench.settings = settings.model_copy(update={"loop": loop})
    one = rig(manifest("A", "B"))
    one.drive(ByTask(A=meet, B=meet))
    assert set(one.statuses().values()) == {TaskStatus.DONE}
    commits = [event.commit for event in bench.of("task_landed")]
    assert bench.repository.parents[commits[1]] == commits[0]


def test_what_cannot_be_written_after_a_landing_ends_the_drive_and_never_undoes_it(
    rig: Any, bench: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    one = rig(manifest("A", "B A"))
    write = bench.log.emit

    def full(event: Any) -> Any:
        if event.type == "task_landed":
            raise MachineError("the disk is full")
        return write(event)

    monkeypatch.setattr(bench.log, "emit", full)
    with pytest.raises(MachineError, match="the disk is full"):
        one.drive(ByTask())
    # As a crash leaves it: the next drive asks git, which knows of the landing.
    assert one.statuses() == {"A": TaskStatus.IN_PROGRESS, "B": TaskStatus.TODO}
    assert [entry.task for entry in bench.repository.landings()] == ["A"]


def test_answered_task_gets_the_words_of_the_human(rig: Any, bench: Any) -> None:
    one = rig(manifest("A"))
    one.drive(ByTask(A=(Deferred(DRAFT),)))
    one.decisions.answer_decision("A.1", "green", "now", Limits())
    one.path.write_text(one.path.read_text().replace("needs-human", "todo"))
    heard: list[Any] = []

    def listen(request: Any) -> Any:
        heard.append(request.answer)
        return DONE

    one.drive(ByTask(A=listen))
    assert heard == ["green"]
    assert one.statuses() == {"A": TaskStatus.DONE}


def test_rejected_answer_is_no_answer_and_the_wait_says_how_to_go_on(rig: Any) -> None:
    one = rig(manifest("A", "B"))
    one.drive(ByTask(A=(Deferred(DRAFT),)))
    one.decisions.answer_decision("A.1", REJECTED, "now", Limits())
    driver = one.drive(ByTask())
    assert [wait.reason for wait in driver.waits()] == [
        "its question was rejected: name it to run it again"
    ]
    heard: list[Any] = []

    def listen(request: Any) -> Any:
        heard.append(request.answer)
        return DONE

    one.path.write_text(one.path.read_text().replace("needs-human", "todo"))
    one.drive(ByTask(A=listen))
    assert heard == [None]


def test_task_that_landed_stays_done_where_an_older_manifest_is_put_back(rig: Any) -> None:
    one = rig(manifest("A", "B"))
    older = one.path.read_text()

    def stash(_request: Any) -> Any:
        assert one.statuses()["A"] is TaskStatus.DONE
        one.path.write_text(older)
        return DONE

    worker = ByTask(B=stash)
    one.drive(worker)
    assert worker.order == ["A", "B"]
    assert one.statuses() == {"A": TaskStatus.DONE, "B": TaskStatus.DONE}


def test_lost_race_for_the_head_costs_no_step(rig: Any, bench: Any) -> None:
    fails = CheckResult(Check.APPLY, Verdict.FAIL, Blame.INTRODUCED, reason="conflict")
    one = rig(manifest("A").replace("deps", "budget = { loops = 1 }\ndeps"))
    bench.gate.scripted = [CheckResult(Check.VERIFY, Verdict.PASS), fails]
    moved = bench.repository.commit("moved", Sha("c1"), "moved by someone")

    class Elsewhere(Landing):
        def __init__(self, *args: Any) -> None:
            super().__init__(*args)
            self._head = moved

    context = bench.context(ByTask())
    bench.sessions.open_session("r1", "A", "main", Sha("c1"))
    driver = Driver(
        context,
        Board(one.file, one.file.load(), bench.log.emit),
        Elsewhere(bench.tools(), "r1", "b", Sha("c1"), None),
        one.decisions,
        make_frontier=Frontier,
        workable=lambda _task: None,
        cancel=one.cancel,
        report_fault=lambda _fault: "",
    )
    driver.drive()
    assert one.statuses() == {"A": TaskStatus.DONE}


REFUSED = (BudgetRefused(Cap.RUN_USD, "a call would pass budget.run_usd"),)


def test_spent_run_begins_no_further_task_and_gives_back_what_it_had_begun(
    rig: Any, bench: Any
) -> None:
    worker = ByTask(B=REFUSED)
    one = rig(manifest("A", "B", "C", "D B"))
    ended = one.run(worker)
    assert worker.order == ["A", "B"]
    assert (ended.status, ended.exit_code) == (RunStatus.BUDGET_EXHAUSTED, 5)
    assert one.statuses() == {
        "A": TaskStatus.DONE,
        "B": TaskStatus.TODO,
        "C": TaskStatus.TODO,
        "D": TaskStatus.TODO,
    }
    spent = "the run's budget is spent; a new run begins with its own"
    waits = [(wait.task, wait.reason) for wait in ended.waits]
    assert waits == [("B", spent), ("C", spent), ("D", "waits for B (todo)")]
    assert one.decisions.decisions() == ()
    [stopped] = [event for event in bench.of("task_stopped") if event.task == "B"]
    assert (stopped.axis, stopped.reason) == ("budget", "run_usd")
    assert one.runs.run("r1").status is RunStatus.BUDGET_EXHAUSTED


def test_tasks_that_run_when_the_money_ends_stop_at_their_next_step_with_their_checkpoints(
    rig: Any, bench: Any
) -> None:
    met = threading.Barrier(2, timeout=20)
    refused = threading.Event()

    def refuse(_request: Any) -> Any:
        met.wait()
        return REFUSED

    def slow(_request: Any) -> Any:
        met.wait()
        assert refused.wait(20)
        return RED

    def emit(event: Any) -> Any:
        if event.type == "noticed" and "budget is spent" in event.text:
            refused.set()
        return append(event)

    append = bench.log.append
    bench.log.append = emit
    loop = bench.settings.loop.model_copy(update={"jobs": 2})
    bench.settings = bench.settings.model_copy(update={"loop": loop})
    one = rig(manifest("A", "B"))
    ended = one.run(ByTask(A=refuse, B=slow))
    assert ended.status is RunStatus.BUDGET_EXHAUSTED
    assert set(one.statuses().values()) == {TaskStatus.TODO}
    saved = {session: iteration for session, iteration, _ in bench.sessions.saved}
    assert saved == {"r1/A/main": 1, "r1/B/main": 1}


def test_run_that_does_all_it_was_asked_is_complete_on_its_last_dollar(
    rig: Any, bench: Any
) -> None:
    one = rig(manifest("A"))
    text = one.path.read_text()
    one.path.write_text(text + 'options = [{ name = "a" }, { name = "b" }]\n')

    class OneOfTwo(ScriptedWorker):
        def execute_step(self, request: Any, sandbox: Any) -> Any:
            is_good = request.option.name == "a"
            self.steps = [ScriptedStep("good" if is_good else None, DONE if is_good else REFUSED)]
            yield from super().execute_step(request, sandbox)

    boxes = bench.settings.sandbox.model_copy(update={"beam_width": 1})
    bench.settings = bench.settings.model_copy(update={"sandbox": boxes})
    assert one.run(OneOfTwo([])).status is RunStatus.COMPLETE


def test_money_of_tasks_and_of_the_run_itself_is_in_the_document_of_the_run(
    rig: Any, bench: Any
) -> None:
    purse = bench.more["purse"] = MemoryPurse()

    def pay(task: str, purpose: str, tokens: int, usd: float) -> None:
        taken = purse.reserve(Claim("r1", task, purpose, "m", tokens, usd))
        assert isinstance(taken, Reserved)
        purse.settle(taken.id, Usage(tokens - 1, 1, usd))

    def paying(request: Any) -> Any:
        pay(request.task.id, "step", 100, 0.5)
        pay(request.task.id, "summary", 10, 0.25)
        return DONE if request.task.id == "A" else (Deferred(DRAFT),)

    pay(GOAL, "judge", 7, 0.125)
    one = rig(manifest("A", "B", "C"))
    one.run(ByTask(A=paying, B=paying, C=SandboxError("gone")))
    purse.reserve(Claim("r1", "C", "step", "m", 1, 9.0))
    found = to_document(summarize(bench.log.events))
    usage = {entry["id"]: entry["usage"] for entry in found["tasks"]}
    whole = {"prompt_tokens": 108, "completion_tokens": 2, "usd": 0.75}
    none = {"prompt_tokens": 0, "completion_tokens": 0, "usd": 0.0}
    assert usage == {"A": whole, "B": whole, "C": none}
    assert found["usage"] == {"prompt_tokens": 222, "completion_tokens": 5, "usd": 1.625}


def test_money_of_a_task_that_broke_or_was_given_back_is_told_too(rig: Any, bench: Any) -> None:
    purse = bench.more["purse"] = MemoryPurse()
    for task in ("A", "B"):
        purse.reserve(Claim("r1", task, "step", "m", 5, 0.5))
    one = rig(manifest("A", "B"))

    def stop(_request: Any) -> Any:
        one.cancel.set()
        raise CancelledError("stop")

    one.run(ByTask(A=SandboxError("gone"), B=stop))
    told = {event.task: event.usage for event in bench.of("money_spent")}
    assert told == {"A": Usage(5, 0, 0.5), "B": Usage(5, 0, 0.5)}


def test_answer_that_raises_a_cap_lets_a_task_go_on_and_counts_what_it_had_spent(
    rig: Any, bench: Any
) -> None:
    one = rig(manifest("A", "B").replace("deps", "budget = { usd = 0.5 }\ndeps"))
    text = one.path.read_text().replace('worker = "command"\ncommand = "true"', 'worker = "graph"')
    one.path.write_text(text)
    purse = bench.more["purse"] = SqlitePurse(one.database, RunCaps(usd=10.0))

    class Paying(ScriptedWorker):
        def execute_step(self, request: Any, sandbox: Any) -> Any:
            name = request.task.id
            worst = 0.3 if name == "A" else 0.1
            claim = Claim("r1", name, "step", "m", 10, worst, request.task.budget)
            taken = purse.reserve(claim)
            is_last = request.loop_iteration > 2 or name == "B"
            self.steps = [ScriptedStep("good" if is_last else "half", DONE, answer="x")]
            if isinstance(taken, Refused):
                self.steps = [
                    ScriptedStep(events=(BudgetRefused(taken.cap, taken.reason, taken.needed),))
                ]
            else:
                purse.settle(taken.id, Usage(5, 5, worst))
            yield from super().execute_step(request, sandbox)

    ended = one.run(Paying([]))
    assert (ended.status, ended.exit_code) == (RunStatus.NEEDS_HUMAN, 3)
    assert one.statuses() == {"A": TaskStatus.BLOCKED, "B": TaskStatus.DONE}
    [asked] = one.decisions.decisions()
    assert (asked.kind, asked.reason) == (DecisionKind.BUDGET, "usd=0.3 used")
    # What `loop answer A --budget usd=2` records.
    one.decisions.answer_decision(asked.id, "usd=2", "now", Limits(usd=2.0))
    one.path.write_text(one.path.read_text().replace('"blocked"', '"todo"'))
    assert one.run(Paying([])).status is RunStatus.COMPLETE
    assert purse.spent("r1", "A").usd == pytest.approx(0.6)
