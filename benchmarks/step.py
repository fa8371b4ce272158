"""What a step costs beyond its worker: keeping its tree, saving its checkpoint, telling of it.

The real plan loop runs on a real worktree of 1,000 files with a worker that writes one small file
a step and takes no time itself. What lies between the end of one step and the beginning of the
next is measured, and beside it, in the same run, a bare SQLite commit of a checkpoint's size and a
bare ``git write-tree``. The limits are 10 ms at the median and 50 ms at the 95th percentile; the
ratio is the worse of the two against its limit.
"""

import statistics
import subprocess
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Final

from benchmarks.life import call
from loopctl.clock import SystemClock
from loopctl.context.brain import LocalBrain
from loopctl.domain import Goal, RunStatus, Scope, Sha, Task, TaskId
from loopctl.engine.planloop import PlanLoop
from loopctl.engine.progress import StallLimits
from loopctl.engine.work import Tools, Work
from loopctl.plan import Budget, encode, single_todo
from loopctl.ports import Sandbox
from loopctl.records import RunRecord
from loopctl.sandbox.repository import OwnedRepository
from loopctl.steps import OutputTail, StepEvent, StepRequest, WorkerProgress
from loopctl.store.calls import SqliteCallDecisions
from loopctl.store.database import open_database
from loopctl.store.eventlog import JsonLinesEventLog
from loopctl.store.runs import SqliteRuns
from loopctl.store.sessions import SqliteSessions
from loopctl.testing import ScriptedGate

NAME: Final = "one step beyond its worker / 10 ms median, 50 ms p95"
LIMIT: Final = 1.0
FILES: Final = 1000
STEPS: Final = 120
MEDIAN_S: Final = 0.010
P95_S: Final = 0.050


class Stopwatch:
    """A worker that writes a file a step, and notes when it was called and when it was left."""

    makes_plans = False

    def __init__(self) -> None:
        self.began: list[float] = []
        self.ended: list[float] = []

    def execute_step(self, request: StepRequest, sandbox: Sandbox) -> Iterator[StepEvent]:
        """Write one file; never close the todo."""
        self.began.append(time.perf_counter())
        (sandbox.workdir / "step.txt").write_text(f"{request.loop_iteration}\n")
        yield OutputTail(1, "not yet")
        self.ended.append(time.perf_counter())
        yield WorkerProgress(
            made_tool_calls=True,
            tool_calls_errored=False,
            response_delta_hash=str(time.monotonic_ns()),
        )

    def gaps(self) -> list[float]:
        """Return the seconds between steps."""
        return [begin - end for end, begin in zip(self.ended, self.began[1:], strict=False)]


def run() -> dict[str, float]:
    """Return the ratio, the two figures, and what they stand beside, in seconds."""
    with tempfile.TemporaryDirectory(prefix="loop-bench-") as name:
        folder = Path(name)
        checkout = make_checkout(folder / "user")
        gaps, blob = _steps(checkout)
        bare_commit = _bare_commits(folder / "bare.db", blob)
        bare_tree = _bare_trees(checkout)
    median = statistics.median(gaps)
    p95 = statistics.quantiles(gaps, n=20)[-1]
    return {
        "ratio": max(median / MEDIAN_S, p95 / P95_S),
        "median": median,
        "p95": p95,
        "bare commit": bare_commit,
        "bare write-tree": bare_tree,
    }


def make_checkout(folder: Path) -> Path:
    """Return a new repository of 1,000 files."""
    folder.mkdir()
    for number in range(FILES):
        path = folder / f"d{number % 20}" / f"f{number}.txt"
        path.parent.mkdir(exist_ok=True)
        path.write_text(f"{number}\n" * 20)
    for argv in (
        ["git", "init", "--quiet", "--initial-branch=main"],
        ["git", "add", "--all"],
        ["git", "commit", "--quiet", "--message", "begin"],
    ):
        call(argv, folder)
    return folder


def _steps(checkout: Path) -> tuple[list[float], bytes]:
    local = checkout / ".local"
    repository = OwnedRepository(
        checkout, local, branch="loop/integration", env={"PATH": "/usr/bin:/bin"}
    )
    repository.sync()
    database = open_database(local / "loop.db")
    head = repository.head()
    SqliteRuns(database).create_run(_record(head))
    sessions = SqliteSessions(database)
    clock = SystemClock()
    log = JsonLinesEventLog(local / "runs" / "r1", "r1", clock)
    tools = Tools(
        gate=ScriptedGate(),
        repository=repository,
        sessions=sessions,
        calls=SqliteCallDecisions(database, clock),
        brain=LocalBrain(local / "runs" / "r1", "goal"),
        clock=clock,
        emit=log.append,
        describe=lambda _result: "",
        stall=StallLimits(window=STEPS, stuck_steps=STEPS),
    )
    task = Task(id=TaskId("T1"), title="t", worker="stopwatch")
    session = sessions.open_session("r1", task.id, "main", head)
    plan = single_todo("goal", "write", Budget(loops_max=STEPS))
    sandbox = repository.open_sandbox("step", head)
    watch = Stopwatch()
    work = Work(
        task=task,
        goal=Goal("goal"),
        run_id="r1",
        session=session,
        plan=plan,
        tree=repository.tree_of(head),
        ref="refs/loop/r1/T1/main",
    )
    PlanLoop(tools, watch, sandbox, work).run()
    sandbox.close()
    last = sessions.open_session("r1", task.id, "main", head).checkpoint
    assert last is not None
    log.close()
    database.close()
    return watch.gaps()[5:], encode(last)


def _record(head: Sha) -> RunRecord:
    return RunRecord(
        id="r1",
        status=RunStatus.RUNNING,
        goal="goal",
        base=head,
        branch="loop/integration",
        started="",
        scope=Scope(),
        settings_json="{}",
        settings_hash="",
    )


def _bare_commits(path: Path, blob: bytes) -> float:
    database = open_database(path)
    with database.write() as connection:
        connection.execute("CREATE TABLE bare (blob BLOB)")
    seconds = []
    for _ in range(STEPS):
        start = time.perf_counter()
        with database.write() as connection:
            connection.execute("INSERT INTO bare VALUES (?)", (blob,))
        seconds.append(time.perf_counter() - start)
    database.close()
    return statistics.median(seconds)


def _bare_trees(checkout: Path) -> float:
    seconds = []
    for _ in range(30):
        start = time.perf_counter()
        subprocess.run(
            ["git", "-C", str(checkout), "write-tree"], capture_output=True, check=True, timeout=60
        )
        seconds.append(time.perf_counter() - start)
    return statistics.median(seconds)
