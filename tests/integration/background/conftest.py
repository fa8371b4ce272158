"""A real project with real runs of ``loop``, in the foreground and in the background."""

import json
import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest

LIMIT_S = 60


def is_gone(pid: int) -> bool:
    """Whether a process is gone, or is nobody's zombie."""
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return True
    with suppress(OSError):
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] == "Z"
    return False


def until(condition: Callable[[], object], what: str) -> None:
    """Wait for a condition, with a limit."""
    deadline = time.monotonic() + LIMIT_S
    look = threading.Event()
    while not condition():
        assert time.monotonic() < deadline, f"waited for {what}"
        look.wait(0.02)


@dataclass
class Bench:
    """A checkout whose tasks wait for files below ``gates``."""

    root: Path
    gates: Path
    env: dict[str, str]
    pids: list[int] = field(default_factory=list)

    def git(self, *words: str) -> str:
        return subprocess.run(
            ["git", *words],
            cwd=self.root,
            env=self.env,
            capture_output=True,
            text=True,
            timeout=LIMIT_S,
            check=True,
        ).stdout

    def manifest(self, *ids: str) -> None:
        """Write tasks that each wait for their gate, then make one file."""
        (self.root / "tasks").mkdir(exist_ok=True)
        text = "schema = 1\n" + "".join(map(self.task, ids))
        (self.root / "tasks" / "ACTIVE.toml").write_text(text)

    def task(self, task: str) -> str:
        return (
            f'[[task]]\nid = "{task}"\ntitle = "Make {task}"\nworker = "command"\n'
            f"command = '''{self.command(task)}'''\nverify_cmd = \"test -e {task}.txt\"\n"
        )

    def command(self, task: str) -> str:
        begun, gate = self.gates / f"{task}.begun", self.gates / task
        return f'echo x > {task}.txt; touch "{begun}"; until [ -e "{gate}" ]; do sleep 0.05; done; '

    def open_gates(self, *ids: str) -> None:
        for one in ids:
            (self.gates / one).touch()

    def has_begun(self, task: str) -> bool:
        return (self.gates / f"{task}.begun").exists()

    def loop(self, *words: str, **env: str) -> "subprocess.CompletedProcess[str]":
        return subprocess.run(
            [sys.executable, "-m", "loopctl", *words],
            cwd=self.root,
            env={**self.env, **env},
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            timeout=LIMIT_S,
            check=False,
        )

    def start(self, *words: str) -> "subprocess.Popen[str]":
        return subprocess.Popen(
            [sys.executable, "-m", "loopctl", *words],
            cwd=self.root,
            env=self.env,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )

    def background(self, *words: str) -> dict[str, Any]:
        done = self.loop(*words, "--bg", "--json")
        assert (done.returncode, done.stderr) == (0, "")
        told: dict[str, Any] = json.loads(done.stdout)
        self.pids.append(told["pid"])
        return told

    def folder(self, run_id: str) -> Path:
        return self.root / ".local" / "runs" / run_id

    def runs(self) -> list[dict[str, Any]]:
        found: list[dict[str, Any]] = json.loads(self.loop("runs", "--json").stdout)["runs"]
        return found

    def events(self, run_id: str) -> list[dict[str, Any]]:
        lines = (self.folder(run_id) / "events.jsonl").read_text().splitlines()
        return [json.loads(line) for line in lines]


@pytest.fixture
def bench(tmp_path: Path) -> Iterator[Bench]:
    root, gates = tmp_path / "checkout", tmp_path / "gates"
    for folder in (root, gates, tmp_path / "tmp"):
        folder.mkdir()
    env = {
        "PATH": os.environ["PATH"],
        "HOME": str(tmp_path),
        "TMPDIR": str(tmp_path / "tmp"),
        # The commands of these tests wait at gates outside.
        "LOOP_SET_SANDBOX__CONFINE": "off",
        "GIT_CONFIG_GLOBAL": os.devnull,
        "GIT_CONFIG_NOSYSTEM": "1",
        "GIT_AUTHOR_NAME": "a",
        "GIT_AUTHOR_EMAIL": "a@localhost",
        "GIT_COMMITTER_NAME": "a",
        "GIT_COMMITTER_EMAIL": "a@localhost",
    }
    made = Bench(root, gates, env)
    made.git("init", "-q", "-b", "main")
    made.manifest("A", "B")
    made.git("add", ".")
    made.git("commit", "-q", "-m", "begin")
    yield made
    for pid in made.pids:
        with suppress(ProcessLookupError):
            os.kill(pid, signal.SIGKILL)
        until(lambda pid=pid: is_gone(pid), f"the end of {pid}")  # type: ignore[misc]


@pytest.fixture
def wait() -> Callable[[Callable[[], object], str], None]:
    return until


@pytest.fixture
def gone() -> Callable[[int], bool]:
    return is_gone
