"""The money of a run: no cap is passed by anybody, together with anybody, dead or alive."""

import signal
import subprocess
import sys
import threading
from collections.abc import Callable
from contextlib import closing
from pathlib import Path

import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, rule

from loopctl.domain import GOAL, Limits, RunStatus, Scope, Sha, Usage
from loopctl.errors import StoreError
from loopctl.moneyports import Cap, Claim, Refused, Reserved
from loopctl.records import RunRecord
from loopctl.store.caps import RunCaps
from loopctl.store.database import Database, open_database
from loopctl.store.purse import SqlitePurse
from loopctl.store.runs import SqliteRuns

LIMIT_S = 60
NO_CAPS = RunCaps()


def claim(
    task: str = "T1", tokens: int = 10, usd: float | None = 0.1, caps: Limits | None = None
) -> Claim:
    return Claim("r1", task, "step", "some/model", tokens, usd, caps or Limits())


def taken(found: Reserved | Refused) -> int:
    assert isinstance(found, Reserved)
    return found.id


def refused(found: Reserved | Refused) -> Cap | None:
    assert isinstance(found, Refused)
    return found.cap


def test_what_is_put_aside_counts_as_spent_until_it_is_settled(database: Database) -> None:
    purse = SqlitePurse(database, RunCaps(usd=1.0))
    first = taken(purse.reserve(claim(tokens=100, usd=0.75)))
    assert purse.spent("r1") == Usage(100, 0, 0.75)
    assert refused(purse.reserve(claim(usd=0.5))) is Cap.RUN_USD
    purse.settle(first, Usage(30, 7, 0.25))
    assert purse.spent("r1") == Usage(30, 7, 0.25)
    assert isinstance(purse.reserve(claim(usd=0.5)), Reserved)


def test_refusal_writes_nothing(database: Database) -> None:
    purse = SqlitePurse(database, RunCaps(tokens=5))
    assert refused(purse.reserve(claim())) is Cap.RUN_TOKENS
    assert database.rows("SELECT * FROM spendings") == []


def test_second_settlement_changes_nothing(database: Database) -> None:
    purse = SqlitePurse(database, NO_CAPS)
    one = taken(purse.reserve(claim()))
    for cost in (Usage(1, 2, 0.03), Usage(9, 9, 9.0)):
        purse.settle(one, cost)
    assert purse.spent("r1") == Usage(1, 2, 0.03)


def test_call_that_cost_more_than_its_worst_case_leaves_less_for_the_next(
    database: Database,
) -> None:
    purse = SqlitePurse(database, RunCaps(tokens=100))
    purse.settle(taken(purse.reserve(claim(tokens=60))), Usage(90, 20))
    assert purse.spent("r1") == Usage(90, 20)
    assert refused(purse.reserve(claim(tokens=1))) is Cap.RUN_TOKENS


def test_sums_are_those_of_one_task_or_of_the_whole_run(database: Database) -> None:
    SqliteRuns(database).create_run(record("r2"))
    purse = SqlitePurse(database, NO_CAPS)
    for task in ("T1", "T2", GOAL):
        purse.settle(taken(purse.reserve(claim(task))), Usage(1, 2, 0.5))
    taken(purse.reserve(Claim("r2", "T1", "step", "m", 1000, 1.0)))
    assert purse.spent("r1", "T1") == purse.spent("r1", GOAL) == Usage(1, 2, 0.5)
    assert purse.spent("r1") == Usage(3, 6, 1.5)
    assert purse.spent("r1", "T9") == Usage()


def test_raised_cap_of_a_task_counts_what_was_spent_before(database: Database) -> None:
    purse = SqlitePurse(database, NO_CAPS)
    low, high = Limits(usd=1.0), Limits(usd=2.0)
    purse.settle(taken(purse.reserve(claim(usd=0.8, caps=low))), Usage(1, 1, 0.8))
    assert refused(purse.reserve(claim(usd=0.8, caps=low))) is Cap.TASK_USD
    assert isinstance(purse.reserve(claim(usd=0.8, caps=high)), Reserved)
    assert refused(purse.reserve(claim(usd=0.8, caps=high))) is Cap.TASK_USD
    assert isinstance(purse.reserve(claim("T2", usd=0.8, caps=low)), Reserved)


def test_crumbs_are_never_less_than_what_they_cost(database: Database) -> None:
    purse = SqlitePurse(database, NO_CAPS)
    for _ in range(50):
        purse.settle(taken(purse.reserve(claim(usd=4e-7))), Usage(1, 0, 4e-7))
    assert purse.spent("r1").usd == pytest.approx(0.00005)


def test_money_of_a_run_that_nobody_began_is_refused(database: Database) -> None:
    with pytest.raises(StoreError):
        SqlitePurse(database, NO_CAPS).reserve(Claim("r9", "T1", "step", "m", 1, 0.0))


def test_spent_is_found_by_an_index(database: Database) -> None:
    for where in ("run_id = 'r1'", "run_id = 'r1' AND (NULL IS NULL OR task = NULL)"):
        (plan,) = database.rows(f"EXPLAIN QUERY PLAN SELECT * FROM spendings WHERE {where}")  # noqa: S608
        assert "USING INDEX spendings_by_task" in plan["detail"]


class Interleaved(RuleBasedStateMachine):
    """Two processes' connections, of which each may die with what it has put aside."""

    TASK = 300
    RUN = RunCaps(usd=0.05, tokens=500)

    def __init__(self) -> None:
        super().__init__()
        self.folder = Path(self.new_folder())  # type: ignore[attr-defined]
        self.path = self.folder / "loop.db"
        self.databases = [open_database(self.path) for _ in range(2)]
        SqliteRuns(self.databases[0]).create_run(record("r1"))
        self.held: list[tuple[int, int, str, int, int]] = []
        self.sums = {"T1": [0, 0], "T2": [0, 0]}

    def teardown(self) -> None:
        for database in self.databases:
            database.close()

    def purse(self, process: int) -> SqlitePurse:
        return SqlitePurse(self.databases[process], self.RUN)

    @rule(
        process=st.integers(0, 1),
        task=st.sampled_from(["T1", "T2"]),
        tokens=st.integers(0, 200),
        micro=st.integers(0, 20_000),
    )
    def reserve(self, process: int, task: str, tokens: int, micro: int) -> None:
        wanted = claim(task, tokens, micro / 1e6, Limits(tokens=self.TASK))
        found = self.purse(process).reserve(wanted)
        total = [sum(one[n] for one in self.sums.values()) for n in range(2)]
        fits = (
            self.sums[task][0] + tokens <= self.TASK
            and total[0] + tokens <= 500
            and total[1] + micro <= 50_000
        )
        assert isinstance(found, Reserved) is fits
        if isinstance(found, Reserved):
            self.held.append((process, found.id, task, tokens, micro))
            self.sums[task][0] += tokens
            self.sums[task][1] += micro

    @rule(which=st.integers(0, 9), part=st.floats(0, 1), again=st.booleans())
    def settle(self, which: int, part: float, again: bool) -> None:  # noqa: FBT001 - drawn
        if not self.held:
            return
        process, reservation, task, tokens, micro = self.held.pop(which % len(self.held))
        cost = (int(tokens * part), int(micro * part))
        for usage in [Usage(cost[0], 0, cost[1] / 1e6), Usage(99, 99, 99.0)][: 1 + again]:
            self.purse(process).settle(reservation, usage)
        self.sums[task][0] += cost[0] - tokens
        self.sums[task][1] += cost[1] - micro

    @rule(process=st.integers(0, 1))
    def die(self, process: int) -> None:
        """What it has put aside stays so for ever."""
        self.databases[process].close()
        self.databases[process] = open_database(self.path)
        self.held = [one for one in self.held if one[0] != process]

    @invariant()
    def spent_is_the_sum_and_passes_no_cap(self) -> None:
        for process in range(2):
            purse = self.purse(process)
            for task, (tokens, micro) in self.sums.items():
                spent = purse.spent("r1", task)
                assert (spent.prompt_tokens, round(spent.usd * 1e6)) == (tokens, micro)
                assert tokens <= self.TASK
            whole = purse.spent("r1")
            assert whole.prompt_tokens <= 500
            assert round(whole.usd * 1e6) <= 50_000


def test_no_interleaving_of_processes_and_deaths_passes_a_cap(
    tmp_path_factory: pytest.TempPathFactory,
) -> None:
    from hypothesis.stateful import run_state_machine_as_test

    class Here(Interleaved):
        def new_folder(self) -> Path:
            return tmp_path_factory.mktemp("purse")

    run_state_machine_as_test(
        Here, settings=settings(max_examples=40, stateful_step_count=25, deadline=None)
    )


def test_threads_of_two_connections_never_pass_a_cap_together(tmp_path: Path) -> None:
    caps = RunCaps(usd=0.95, tokens=10_000)
    with (
        closing(open_database(tmp_path / "loop.db")) as one,
        closing(open_database(tmp_path / "loop.db")) as two,
    ):
        SqliteRuns(one).create_run(record("r1"))
        start = threading.Barrier(8, timeout=LIMIT_S)
        granted: list[Reserved] = []
        refusals: list[Refused] = []

        def spend(database: Database, task: str) -> None:
            purse = SqlitePurse(database, caps)
            start.wait()
            while True:
                found = purse.reserve(claim(task, usd=0.1))
                if isinstance(found, Refused):
                    refusals.append(found)
                    return
                granted.append(found)

        threads = [
            threading.Thread(target=spend, args=((one, two)[n % 2], f"T{n % 3}")) for n in range(8)
        ]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join(LIMIT_S)
        assert len({found.id for found in granted}) == 9
        assert {found.cap for found in refusals} == {Cap.RUN_USD}
        assert len(refusals) == 8
        assert SqlitePurse(one, caps).spent("r1").usd == pytest.approx(0.9)


SPENDER = """
import sys
from pathlib import Path
from loopctl import failpoints
from loopctl.domain import Usage
from loopctl.moneyports import Claim, Refused
from loopctl.store.caps import RunCaps
from loopctl.store.database import open_database
from loopctl.store.purse import SqlitePurse

path, point, settles = sys.argv[1:]
database = open_database(Path(path))
purse = SqlitePurse(database, RunCaps(usd=1.0))
print("ready", flush=True)
sys.stdin.readline()
failpoints.arm({failpoints.VARIABLE: point})
granted = 0
while True:
    found = purse.reserve(Claim("r1", "T1", "step", "m", 10, 0.1))
    if isinstance(found, Refused):
        break
    granted += 1
    if settles == "yes":
        purse.settle(found.id, Usage(5, 1, 0.1))
print(granted, flush=True)
database.close()
"""


@pytest.fixture
def spender(tmp_path: Path) -> Callable[..., "subprocess.Popen[str]"]:
    with closing(open_database(tmp_path / "loop.db")) as database:
        SqliteRuns(database).create_run(record("r1"))

    def start(point: str = "", settles: str = "no") -> "subprocess.Popen[str]":
        return subprocess.Popen(
            [sys.executable, "-c", SPENDER, str(tmp_path / "loop.db"), point, settles],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )

    return start


def finish(process: "subprocess.Popen[str]") -> list[str]:
    """Let a process that has said that it is ready go on; return what else it said."""
    said, _ = process.communicate("go\n", timeout=LIMIT_S)
    return said.split()[1:]


def test_two_processes_never_pass_a_cap_together(
    spender: Callable[..., "subprocess.Popen[str]"], tmp_path: Path
) -> None:
    both = [spender(), spender()]
    for process in both:
        assert process.stdout is not None
        assert process.stdin is not None
        assert process.stdout.read(6) == "ready\n"
    for process in both:
        assert process.stdin is not None
        process.stdin.write("go\n")
        process.stdin.flush()
    granted = [int(process.communicate(timeout=LIMIT_S)[0]) for process in both]
    assert sum(granted) == 10
    with closing(open_database(tmp_path / "loop.db")) as database:
        assert SqlitePurse(database, NO_CAPS).spent("r1").usd == pytest.approx(1.0)


@pytest.mark.parametrize(
    ("point", "left"),
    [
        ("purse.before_reserve:3", (10, 2, 0.2)),
        ("database.before_commit:5", (10, 2, 0.2)),
        ("database.after_commit:5", (20, 2, 0.3)),
        ("purse.after_reserve:3", (20, 2, 0.3)),
        ("purse.before_settle:3", (20, 2, 0.3)),
        ("database.before_commit:6", (20, 2, 0.3)),
        ("database.after_commit:6", (15, 3, 0.3)),
        ("purse.after_settle:3", (15, 3, 0.3)),
    ],
)
def test_kill_around_a_write_never_frees_money_that_may_have_been_spent(
    spender: Callable[..., "subprocess.Popen[str]"],
    tmp_path: Path,
    point: str,
    left: tuple[int, int, float],
) -> None:
    process = spender(point, "yes")
    assert finish(process) == []
    assert process.returncode == -signal.SIGKILL
    with closing(open_database(tmp_path / "loop.db")) as database:
        spent = SqlitePurse(database, NO_CAPS).spent("r1")
    assert (spent.prompt_tokens, spent.completion_tokens) == left[:2]
    assert spent.usd == pytest.approx(left[2])
    [granted] = finish(spender("", "yes"))
    assert int(granted) == 10 - round(left[2] * 10)


def record(run_id: str) -> RunRecord:
    return RunRecord(
        id=run_id,
        status=RunStatus.RUNNING,
        goal="the goal",
        base=Sha("c1"),
        branch="loop/integration",
        started="2026-01-02T03:04:05.000Z",
        scope=Scope(),
        settings_json="{}",
        settings_hash="h",
    )
