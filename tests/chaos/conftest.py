"""A small project that is driven by the real command, killed, and driven on."""

import contextlib
import fcntl
import json
import os
import select
import shutil
import signal
import sqlite3
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from loopctl.bootstrap import open_project

LIMIT_S = 180
WORLD = Path(__file__).with_name("world.py")
KILLED = -signal.SIGKILL
ROUNDS = 8

MANIFEST = """\
[goal]
text = "Write three files"
[[task]]
id = "C"
title = "Write the first, one way or the other"
worker = "command"
verify_cmd = "test -f c.txt"
options = [
  { name = "good", command = "echo 1 > c.txt" },
  { name = "bad", command = "echo 2 > d.txt" },
]
budget = { loops = 2 }
[[task]]
id = "B"
title = "Write the second, when told what"
deps = ["C"]
worker = "command"
command = '''
if [ -n "$LOOP_ANSWER" ]; then echo "$LOOP_ANSWER" > b.txt; exit; fi
loop defer --reason unknown --decision-needed "What?"
'''
verify_cmd = "test -f b.txt"
[[task]]
id = "T"
title = "Call tools"
deps = ["C"]
worker = "command"
command = "calls send put ask read send"
verify_cmd = "test -f calls.txt"
"""
OUTSIDE = Counter({("send", 0): 1, ("put", 1): 1, ("send", 2): 1, ("send", 4): 1})
"""The effects of a whole run, each once; the first two come before the question."""

ANSWERS = {"external": "told", "approval": "approve"}
GIT = ("git", "-c", "user.name=Chaos", "-c", "user.email=chaos@localhost")
OURS = frozenset({"presence.lock", "setup.lock", "worktrees.lock"})
"""Files of ours that are locked, not lock files of git."""

LEDGER = """
SELECT s.task, c.iteration, c.ordinal, c.tool, c.args_sha256, c.state
FROM calls c JOIN sessions s ON s.id = c.session_id ORDER BY 1, 2, 3
"""
SESSIONS = """
SELECT s.task, s.candidate, max(c.loop_iteration < 65536)
FROM sessions s LEFT JOIN checkpoints c ON c.session_id = s.id GROUP BY s.id ORDER BY 1, 2
"""
APPROVALS = """
SELECT d.task, a.ordinal, a.tool, a.used IS NULL FROM approvals a JOIN decisions d
ON d.id = a.decision_id WHERE d.kind = 'approval'
"""
RUN_FILES = {"events.jsonl", "audit.jsonl", "context.md", "run.json", "report.md", "report.html"}


Traced = Callable[[int], contextlib.AbstractContextManager[None]]
"""Traces the process of a number to its end."""


@dataclass(frozen=True)
class Ended:
    """What is left when all is done: everything that must not depend on kills."""

    landed: tuple[tuple[str, ...], ...]
    manifest: bytes
    runs: tuple[tuple[Any, ...], ...]
    sessions: tuple[tuple[Any, ...], ...]
    decisions: tuple[tuple[Any, ...], ...]
    ledger: tuple[tuple[Any, ...], ...]
    approvals: tuple[tuple[Any, ...], ...]
    effects: tuple[tuple[tuple[str, int], int], ...]
    kept: frozenset[tuple[str, str]]
    head: str
    status: str


class Zygote:
    """Starts ``loop`` processes that need not load anything."""

    def __init__(self) -> None:
        self._process = subprocess.Popen(
            [sys.executable, str(WORLD), "--zygote"],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
            bufsize=1,
        )

    def start(self, words: tuple[str, ...], env: dict[str, str], said: Path, go: str = "") -> int:
        """Return the pid of a new process, which :meth:`wait` must wait for."""
        wanted = {"words": words, "env": env, "said": str(said), "go": go}
        assert self._process.stdin is not None
        self._process.stdin.write(json.dumps(wanted) + "\n")
        return self._number()

    def wait(self, pid: int) -> int:
        """Return the exit code of the process that was started last; a late one is ended."""
        assert self._process.stdout is not None
        if not select.select([self._process.stdout], [], [], LIMIT_S)[0]:
            os.kill(pid, signal.SIGKILL)
            self._number()
            raise AssertionError("it did not come to its end")
        return self._number()

    def _number(self) -> int:
        assert self._process.stdout is not None
        return int(self._process.stdout.readline())

    def close(self) -> None:
        self._process.communicate()


class Rig:
    """A checkout in a place of its own, and the real command in it."""

    def __init__(self, place: Path, zygote: Zygote) -> None:
        self.place = place
        self.folder = place / "project"
        self.effects = place / "effects"
        self.answers = place / "answers.toml"
        self.path = os.environ["PATH"]
        self._stages = place.with_name(f"{place.name}-stages")
        self._zygote = zygote
        (self.folder / "tasks").mkdir(parents=True)
        (self.folder / "tasks" / "ACTIVE.toml").write_text(MANIFEST)
        self.git("init", "-q", "-b", "main")
        self.git("add", "-A")
        self.git("commit", "-q", "-m", "begin")
        (place / "tmp").mkdir()

    # --- stages: how things stand before a kill

    def keep(self, stage: str) -> None:
        shutil.copytree(self.place, self._stages / stage, symlinks=True)

    def back_to(self, stage: str) -> None:
        shutil.rmtree(self.place)
        shutil.copytree(self._stages / stage, self.place, symlinks=True)

    # --- processes

    def git(self, *args: str) -> str:
        done = subprocess.run(
            [*GIT, "-C", str(self.folder), *args],
            capture_output=True,
            text=True,
            check=True,
            timeout=LIMIT_S,
        )
        return done.stdout

    def env(self, failpoint: str = "") -> dict[str, str]:
        tmp = str(self.place / "tmp")
        return {
            "LOOP_FAILPOINT": failpoint,
            "NO_COLOR": "1",
            "TMPDIR": tmp,
            "PATH": self.path,
            # The commands of these tests leave marks outside.
            "LOOP_SET_SANDBOX__CONFINE": "off",
        }

    def argv(self, *words: str) -> tuple[str, ...]:
        return ("-C", str(self.folder), *words)

    def start(self, *words: str) -> "subprocess.Popen[bytes]":
        """Start the command as a process with nothing loaded."""
        return subprocess.Popen(
            [sys.executable, str(WORLD), *self.argv(*words)],
            env={**os.environ, **self.env()},
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.PIPE,
        )

    def loop(
        self,
        *words: str,
        failpoint: str = "",
        traced: Traced | None = None,
        codes: frozenset[int] = frozenset({0, 3, 4, KILLED}),
        **env: str,
    ) -> int:
        """Run the command to its end, or to its kill; return the exit code."""
        said, go = self.place / "said", self.place / "go"
        if traced is not None:
            os.mkfifo(go)
        given = {**self.env(failpoint), **env}
        pid = self._zygote.start(self.argv(*words), given, said, str(go) if traced else "")
        with traced(pid) if traced else contextlib.nullcontext():
            if traced:
                go.write_bytes(b"")
                go.unlink()
            code = self._zygote.wait(pid)
        words_said = said.read_text()
        assert "Traceback" not in words_said, words_said
        assert "internal fault" not in words_said, words_said
        assert code in codes, f"exit code {code}: {words_said}"
        return code

    def end_children(self) -> None:
        """Kill what a killed process has left running, as a kill of the whole group does."""
        for pid in processes_in(self.folder):
            with contextlib.suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)

    # --- what a person does

    def go_on(self) -> None:
        """Drive until only the two questions of the manifest are left; look at what is in doubt."""
        assert self.loop() == 3
        while doubts := [row for row in self.open_decisions() if row["kind"] == "outcome"]:
            self.settle(doubts[0])

    def finish(self) -> None:
        """Answer whatever is asked, and drive what a crash has left, until all is done."""
        for number in range(ROUNDS):
            asked = self.open_decisions()
            doubts = [row for row in asked if row["kind"] == "outcome"]
            if doubts:
                self.settle(doubts[0])
            elif asked:
                assert self.answer(asked) in {0, 3}
            elif not (number and self.is_done()):
                assert self.loop() in {0, 3}
            else:
                return
        raise AssertionError(f"it never ends: {self.statuses()}")

    def finish_by_name(self) -> None:
        """Do all that is left: name what the machine has broken, answer what is asked."""
        for number in range(ROUNDS):
            statuses = dict(zip("CBT", self.statuses() or ["todo"] * 3, strict=False))
            blocked = [task for task, status in statuses.items() if status == "blocked"]
            asked = self.open_decisions()
            if blocked:
                assert self.loop(*blocked) in {0, 3, 4}
            elif number and self.is_done():
                return
            elif doubts := [row for row in asked if row["kind"] == "outcome"]:
                self.settle(doubts[0])
            elif asked and not self.is_under_way():
                assert self.answer(asked) in {0, 3}
            else:
                assert self.loop() in {0, 3}
        raise AssertionError(f"it never ends: {self.statuses()}")

    def answer(self, asked: list[sqlite3.Row], failpoint: str = "", **how: Any) -> int:
        self.write_answers(asked)
        return self.loop("answer", "--file", str(self.answers), failpoint=failpoint, **how)

    def write_answers(self, asked: list[sqlite3.Row]) -> None:
        tables = (
            f'[[answer]]\nid = "{row["id"]}"\nanswer = "{ANSWERS[row["kind"]]}"\n' for row in asked
        )
        self.answers.write_text("".join(tables))

    def settle(self, doubt: sqlite3.Row) -> None:
        """Look whether the call happened, and tell the truth."""
        lines = self.effects.read_text().splitlines() if self.effects.exists() else []
        done = [line.split() for line in lines if line.startswith(doubt["call_key"])]
        text = f"it happened: did {done[0][2]}" if done else "it did not, run it again"
        assert self.loop("answer", doubt["id"], text) in {0, 3}

    # --- what there is to see

    def rows(self, sql: str) -> list[sqlite3.Row]:
        if not (self.folder / ".local" / "loop.db").exists():
            return []
        with contextlib.closing(sqlite3.connect(self.folder / ".local" / "loop.db")) as database:
            database.row_factory = sqlite3.Row
            # A disk that was full from the first write on leaves a file without tables.
            if not database.execute("SELECT count(*) FROM sqlite_master").fetchone()[0]:
                return []
            return database.execute(sql).fetchall()

    def open_decisions(self) -> list[sqlite3.Row]:
        return self.rows("SELECT * FROM decisions WHERE answer IS NULL ORDER BY seq")

    def is_done(self) -> bool:
        return self.statuses() == ["done", "done", "done"] and not self.is_under_way()

    def is_under_way(self) -> bool:
        return any(row["status"] == "running" for row in self.rows("SELECT status FROM runs"))

    def manifest(self) -> bytes:
        return (self.folder / "tasks" / "ACTIVE.toml").read_bytes()

    def statuses(self) -> list[str]:
        lines = self.manifest().decode().splitlines()
        return [line.split('"')[1] for line in lines if line.startswith("status")]

    def happened(self) -> Counter[tuple[str, int]]:
        """Return the outside effects by tool and number; no key comes twice."""
        lines = self.effects.read_text().splitlines() if self.effects.exists() else []
        keys = [line.split()[0] for line in lines]
        assert len(keys) == len(set(keys)), f"done twice: {lines}"
        return Counter((line.split()[1], int(line.split()[2])) for line in lines)

    def ended(self) -> Ended:
        """Return what is left, having looked that nothing else is.

        A step that had come to its end, but whose question nobody had heard yet, is taken once
        more: how many steps there were is not compared.
        """
        log = self.git(
            "log",
            "--format=%T %(trailers:key=Loop-Task,valueonly,separator=)",
            "main..loop/integration",
        )
        own = f"--git-dir={self.folder}/.local/git"
        refs = self.git(own, "for-each-ref", "--format=%(refname)", "refs/loop").split()
        # What each candidate has made, wherever it began: after a crash it may begin later on.
        kept = {
            ("/".join(ref.split("/")[3:]), self.git(own, "diff-tree", "-r", f"{ref}^", ref))
            for ref in refs
            if "+" not in ref
        }
        self.look_for_leftovers()
        decisions = "SELECT task, kind, question, answer FROM decisions WHERE kind != 'outcome'"
        return Ended(
            landed=tuple(tuple(line.split()) for line in log.splitlines()),
            manifest=self.manifest(),
            runs=self._table("SELECT DISTINCT status FROM runs"),
            sessions=self._table(SESSIONS),
            decisions=self._table(f"{decisions} ORDER BY 1, 2"),
            ledger=self._table(LEDGER),
            approvals=self._table(APPROVALS),
            effects=tuple(sorted(self.happened().items())),
            kept=frozenset(kept),
            head=self.git("rev-parse", "HEAD^{tree}"),
            status=self.git("status", "--porcelain"),
        )

    def _table(self, sql: str) -> tuple[tuple[Any, ...], ...]:
        return tuple(tuple(row) for row in self.rows(sql))

    def look_for_leftovers(self) -> None:
        local = self.folder / ".local"
        assert [tuple(row) for row in self.rows("PRAGMA integrity_check")] == [("ok",)]
        for git_dir in (self.folder / ".git", local / "git"):
            fsck = subprocess.run(
                [*GIT, f"--git-dir={git_dir}", "fsck", "--strict", "--no-dangling"],
                capture_output=True,
                text=True,
                timeout=LIMIT_S,
                check=False,
            )
            assert fsck.returncode == 0, fsck.stderr
        assert [path for path in self.folder.rglob("*.lock") if path.name not in OURS] == []
        places = ("worktrees", "indexes", "exchange", "origins", "trash", "owners", "git/worktrees")
        left = [str(path) for place in places for path in (local / place).glob("*")]
        marks = (
            "carry-*",
            "wip-*",
            "clone-*",
            "rescue-*",
            "pack-*",
            "marker-*",
            "land-*",
            "landing",
        )
        left += [str(path) for mark in marks for path in local.glob(mark)]
        # Python itself looks whether it can write into a folder for temporary files, with this word.
        temporary = (self.place / "tmp").iterdir()
        probe = {"", "blat"}
        left += [str(path) for path in temporary if path.is_dir() or path.read_text() not in probe]
        left += [str(path) for path in self.folder.glob("tasks/.*")]
        left += [str(path) for path in (*local.rglob("*.new"), *local.glob("shim/loop.*"))]
        left += [str(path) for path in local.glob("runs/*/*") if path.name not in RUN_FILES]
        left += [f"process {pid}" for pid in processes_in(self.folder)]
        assert left == []
        chains = open_project(self.folder).audit()
        assert {chain and chain.flaw for chain in chains.values()} == {None}
        for run in (local / "runs").iterdir():
            lines = (run / "events.jsonl").read_bytes().splitlines()
            numbers = [json.loads(line)["seq"] for line in lines]
            assert numbers == list(range(1, len(numbers) + 1))


def differences(found: Ended, wanted: Ended) -> str:
    pairs = ((name, getattr(found, name), getattr(wanted, name)) for name in vars(wanted))
    return "; ".join(f"{name}: {one} instead of {two}" for name, one, two in pairs if one != two)


def processes_in(folder: Path) -> list[int]:
    """Return the processes that have the folder on their command line or work in it."""
    found = []
    for entry in Path("/proc").iterdir():
        if not entry.name.isdigit() or int(entry.name) == os.getpid():
            continue
        try:
            line = (entry / "cmdline").read_bytes()
            where = str((entry / "cwd").readlink())
        except OSError:
            continue
        if bytes(folder) in line or where.startswith(str(folder)):
            found.append(int(entry.name))
    return found


@pytest.fixture(scope="session")
def traceable() -> None:
    """Skip where no process can be traced."""
    try:
        done = subprocess.run(
            ["strace", "-o", "/dev/null", "true"], capture_output=True, check=False, timeout=60
        )
    except FileNotFoundError:
        pytest.skip("strace is not installed")
    if done.returncode:
        pytest.skip(f"ptrace is refused here: {done.stderr.decode(errors='replace').strip()}")


@pytest.fixture(scope="session")
def zygote() -> Iterator[Zygote]:
    made = Zygote()
    yield made
    made.close()


@pytest.fixture(scope="session")
def rig(tmp_path_factory: pytest.TempPathFactory, zygote: Zygote) -> Rig:
    """A project that each test puts back to a stage: ``new`` or ``asked``."""
    made = Rig(tmp_path_factory.mktemp("rig") / "place", zygote)
    made.keep("new")
    made.go_on()
    made.keep("asked")
    return made


@pytest.fixture(scope="session")
def asked(rig: Rig) -> Ended:
    """What a run that nothing disturbs comes to before its questions are answered."""
    rig.back_to("asked")
    return rig.ended()


@pytest.fixture(scope="session")
def undisturbed(rig: Rig) -> Ended:
    """What a run that nothing disturbs comes to at its end."""
    rig.back_to("asked")
    rig.finish()
    assert rig.happened() == OUTSIDE
    return rig.ended()


@pytest.fixture(scope="session")
def shared(tmp_path_factory: pytest.TempPathFactory) -> Callable[[str, Callable[[], str]], str]:
    """Make a text once for all the processes of this test session."""
    base = tmp_path_factory.getbasetemp()
    folder = base.parent if "PYTEST_XDIST_WORKER" in os.environ else base

    def once(name: str, make: Callable[[], str]) -> str:
        path = folder / name
        with (folder / f"{name}.guard").open("w") as guard:
            fcntl.flock(guard, fcntl.LOCK_EX)
            if not path.exists():
                path.write_text(make())
        return path.read_text()

    return once


@pytest.fixture(scope="session")
def journal(tmp_path_factory: pytest.TempPathFactory) -> Callable[[str], None]:
    """Write a line for each kill into one file of the test session: ``chaos.log``."""
    base = tmp_path_factory.getbasetemp()
    folder = base.parent if "PYTEST_XDIST_WORKER" in os.environ else base

    def note(line: str) -> None:
        with (folder / "chaos.log").open("a") as file:
            file.write(f"{time.time():.2f} {line}\n")

    return note


@pytest.fixture(scope="session")
def attempt(
    rig: Rig, asked: Ended, undisturbed: Ended, journal: Callable[[str], None]
) -> Callable[[str, str, Callable[[], int]], str]:
    """Kill in a stage, go on, and compare: return what went otherwise, empty where nothing did."""
    expected = {"new": asked, "asked": undisturbed}
    onward = {"new": rig.go_on, "asked": rig.finish}

    def one(stage: str, point: str, kill: Callable[[], int]) -> str:
        rig.back_to(stage)
        began = time.monotonic()
        wrong, code = "", 0
        try:
            code = kill()
            onward[stage]()
            ended = rig.ended()
            if ended != expected[stage]:
                wrong = f"{stage} {point}: {differences(ended, expected[stage])}"
        except (AssertionError, subprocess.SubprocessError, sqlite3.Error) as error:
            wrong = f"{stage} {point}: {error}"
        doubts = len(rig.rows("SELECT 1 FROM decisions WHERE kind = 'outcome'"))
        verdict = "WRONG" if wrong else "killed" if code == KILLED else "passed"
        took = time.monotonic() - began
        journal(f"{verdict} {took:.2f}s {doubts} in doubt: {wrong or f'{stage} {point}'}")
        return wrong

    return one
