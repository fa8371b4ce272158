"""A thousand trivial tasks in one run: the last hundred against the first.

The real command drives them, and is watched from outside. The ratio is of processor time, its
children's included, which other processes disturb least; the wall time and the memory of the
engine's process after a hundred tasks and at the end are shown beside it. Takes minutes, so it is
measured only when it is named: ``python -m benchmarks thousand``.
"""

import os
import subprocess
import sys
import tempfile
import time
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from loopctl.bootstrap import open_project

NAME: Final = "processor time of the last 100 of 1,000 tasks / of the first 100"
LIMIT: Final = 1.2
ONLY_WHEN_NAMED: Final = True
TASKS: Final = int(os.environ.get("LOOP_BENCH_TASKS", "1000"))
PART: Final = 100
MEMORY_LIMIT_MB: Final = 20

_LOOK_S: Final = 0.02
_TICK_S: Final = 1 / os.sysconf("SC_CLK_TCK")
_GIT: Final = ("git", "-c", "user.name=bench", "-c", "user.email=bench@localhost")


@dataclass(frozen=True)
class Look:
    """The engine's process as a task ended."""

    wall_s: float
    processor_s: float
    memory_mb: float


def run() -> dict[str, float]:
    """Return the ratio, and both hundreds' time of processor and wall in seconds a task."""
    with tempfile.TemporaryDirectory(prefix="loop-bench-") as folder:
        looks = watch(make_checkout(Path(folder)))
    # The start of the process is no part of any task: its first one is where counting begins.
    first = (looks[0], looks[PART])
    last = (looks[-1 - PART], looks[-1])
    grown = looks[-1].memory_mb - looks[PART].memory_mb
    print(f"    memory {looks[PART].memory_mb:.1f} MB, then {looks[-1].memory_mb:.1f} MB")
    figures = {
        "first": (first[1].processor_s - first[0].processor_s) / PART,
        "last": (last[1].processor_s - last[0].processor_s) / PART,
        "first by the wall": (first[1].wall_s - first[0].wall_s) / PART,
        "last by the wall": (last[1].wall_s - last[0].wall_s) / PART,
    }
    print("    " + ", ".join(f"{name} {value:.3f} s" for name, value in figures.items()))
    if grown > MEMORY_LIMIT_MB:
        sys.exit(f"{grown:.1f} MB more after {TASKS} tasks; at most {MEMORY_LIMIT_MB} are allowed")
    return {"ratio": figures["last"] / figures["first"], **figures}


def watch(checkout: Path) -> list[Look]:
    """Drive all tasks; return a look at the process for the end of each but the last."""
    process = subprocess.Popen(
        [sys.executable, "-m", "loopctl", "-C", str(checkout)],
        stdin=subprocess.DEVNULL,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    )
    project = open_project(checkout)
    looks: list[Look] = []
    tail = None
    while len(looks) < TASKS - 1:
        assert process.poll() is None, f"ended with {process.returncode}"
        folders = list((checkout / ".local" / "runs").glob("*"))
        tail = tail or (project.tail(folders[0].name) if folders else None)
        ended = [event for event in tail.read() if event.type == "task_stopped"] if tail else []
        looks += [_look(process.pid)] * len(ended)
        time.sleep(_LOOK_S)
    assert process.wait(timeout=120) == 0
    assert project.runs()[0].status == "complete"
    return looks


def make_checkout(folder: Path) -> Path:
    """Return a repository whose manifest has all the tasks; each writes the same small file."""
    tables = (
        f'[[task]]\nid = "T{number}"\ntitle = "Write {number}"\nworker = "command"\n'
        f'command = "echo {number} > value"\nverify_cmd = "grep -qx {number} value"\n'
        for number in range(TASKS)
    )
    (folder / "tasks").mkdir()
    (folder / "tasks" / "ACTIVE.toml").write_text("schema = 1\n\n" + "\n".join(tables))
    for words in (("init", "-q"), ("add", "-A"), ("commit", "-q", "-m", "begin")):
        subprocess.run([*_GIT, *words], cwd=folder, check=True, timeout=60)
    return folder


def _look(pid: int) -> Look:
    """Look at a process: its fields are counted from behind its name, which may hold anything."""
    fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    ticks = sum(int(field) for field in fields[11:15])
    pages = int(Path(f"/proc/{pid}/statm").read_text().split()[1])
    memory_mb = pages * os.sysconf("SC_PAGE_SIZE") / (1 << 20)
    return Look(time.monotonic(), ticks * _TICK_S, memory_mb)
