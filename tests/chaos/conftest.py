"""A small project that is driven by the real command, killed, and driven on."""

import json
import os
import signal
import sqlite3
import subprocess
import sys
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import pytest

LIMIT_S = 120

MANIFEST = """\
[goal]
text = "Write three files"
[[task]]
id = "A"
title = "Write the first"
worker = "command"
command = "echo a > a.txt"
verify_cmd = "test -f a.txt"
[[task]]
id = "B"
title = "Write the second, when told what"
deps = ["A"]
worker = "command"
command = '''
if [ -n "$LOOP_ANSWER" ]; then echo "$LOOP_ANSWER" > b.txt; exit; fi
loop defer --reason unknown --decision-needed "What?"
'''
verify_cmd = "test -f b.txt"
[[task]]
id = "C"
title = "Write the third, one way or the other"
worker = "command"
verify_cmd = "test -f c.txt"
options = [
  { name = "good", command = "echo 1 > c.txt" },
  { name = "bad", command = "echo 2 > d.txt" },
]
budget = { loops = 2 }
"""
GIT = ("git", "-c", "user.name=Chaos", "-c", "user.email=chaos@localhost")


@dataclass(frozen=True)
class Ended:
    """What is left when all is done: everything that must not depend on kills."""

    landed: tuple[tuple[str, str], ...]
    manifest: bytes
    decisions: tuple[tuple[str, str | None], ...]
    kept: frozenset[str]
    head: str
    status: str


class Rig:
    """A checkout, and the real command in it."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        (folder / "tasks").mkdir(parents=True)
        (folder / "tasks" / "ACTIVE.toml").write_text(MANIFEST)
        self.git("init", "-q", "-b", "main")
        self.git("add", "-A")
        self.git("commit", "-q", "-m", "begin")

    def git(self, *args: str) -> str:
        done = subprocess.run(
            [*GIT, "-C", str(self.folder), *args],
            capture_output=True,
            text=True,
            check=True,
            timeout=LIMIT_S,
        )
        return done.stdout

    def start(self, *words: str, failpoint: str = "") -> "subprocess.Popen[bytes]":
        return subprocess.Popen(
            [sys.executable, "-m", "loopctl", "-C", str(self.folder), *words],
            env={**os.environ, "LOOP_FAILPOINT": failpoint, "NO_COLOR": "1"},
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.PIPE,
        )

    def loop(self, *words: str, failpoint: str = "") -> int:
        """Run the command to its end, or to its kill; return the exit code."""
        process = self.start(*words, failpoint=failpoint)
        _, said = process.communicate(timeout=LIMIT_S)
        assert b"Traceback" not in said, said.decode()
        assert process.returncode in {0, 3, 4, -signal.SIGKILL}, said.decode()
        return process.returncode

    def go_on(self) -> None:
        """Drive on until the run has ended, answer, and drive the answered task."""
        assert self.loop() == 3
        self.finish_answer()

    def finish_answer(self) -> None:
        if not any(answer for _, answer in self.decisions()):
            assert self.loop("answer", "B", "told") == 0
        elif b'status = "done"\ndeps' not in self.manifest():
            assert self.loop() == 0

    def manifest(self) -> bytes:
        return (self.folder / "tasks" / "ACTIVE.toml").read_bytes()

    def decisions(self) -> tuple[tuple[str, str | None], ...]:
        database = sqlite3.connect(self.folder / ".local" / "loop.db")
        try:
            assert database.execute("PRAGMA integrity_check").fetchone() == ("ok",)
            rows = database.execute("SELECT id, answer FROM decisions ORDER BY seq").fetchall()
        finally:
            database.close()
        return tuple(rows)

    def ended(self) -> Ended:
        """Return what is left, having looked that nothing else is."""
        log = self.git(
            "log",
            "--format=%T %(trailers:key=Loop-Task,valueonly,separator=)",
            "main..loop/integration",
        )
        landed = tuple(tuple(line.split()) for line in log.splitlines())
        refs = self.git(
            f"--git-dir={self.folder}/.local/git",
            "for-each-ref",
            "--format=%(refname)",
            "refs/loop",
        )
        kept = {"/".join(ref.split("/")[3:]) for ref in refs.split() if "+" not in ref}
        self.look_for_leftovers()
        return Ended(
            landed=landed,  # type: ignore[arg-type]
            manifest=self.manifest(),
            decisions=self.decisions(),
            kept=frozenset(kept),
            head=self.git("rev-parse", "HEAD^{tree}"),
            status=self.git("status", "--porcelain"),
        )

    def look_for_leftovers(self) -> None:
        local = self.folder / ".local"
        for git_dir in (self.folder / ".git", local / "git"):
            fsck = subprocess.run(
                [*GIT, f"--git-dir={git_dir}", "fsck", "--strict", "--no-dangling"],
                capture_output=True,
                text=True,
                timeout=LIMIT_S,
                check=False,
            )
            assert fsck.returncode == 0, fsck.stderr
        locks = [path for path in self.folder.rglob("*.lock") if path.name not in OURS]
        assert locks == []
        assert list((local / "worktrees").glob("*")) == []
        for run in (local / "runs").iterdir():
            lines = (run / "events.jsonl").read_bytes().splitlines()
            numbers = [json.loads(line)["seq"] for line in lines]
            assert numbers == list(range(1, len(numbers) + 1))
        assert processes_in(self.folder) == []


OURS = frozenset({"presence.lock", "setup.lock", "worktrees.lock"})
"""Files of ours that are locked, not lock files of git."""


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
def new_rig() -> Callable[[Path], Rig]:
    return Rig


@pytest.fixture(scope="session")
def asked(tmp_path_factory: pytest.TempPathFactory) -> Ended:
    """What a run that nothing disturbs comes to before its question is answered."""
    one = Rig(tmp_path_factory.mktemp("asked") / "project")
    assert one.loop() == 3
    return one.ended()


@pytest.fixture(scope="session")
def undisturbed(tmp_path_factory: pytest.TempPathFactory) -> Ended:
    """What a run that nothing disturbs comes to at its end."""
    one = Rig(tmp_path_factory.mktemp("undisturbed") / "project")
    one.go_on()
    return one.ended()
