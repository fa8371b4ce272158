"""What confinement adds to a command: beside the bare command, turn by turn, in the same run.

``sh -c true`` is run as the commands of tasks are, in the same worktree, once as it is and once
confined, a pair at a time; the difference of the medians counts. The limit is 20 ms.
"""

import os
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Final

from loopctl.ports import Confinement
from loopctl.sandbox import process
from loopctl.sandbox.confine.choice import choose
from loopctl.sandbox.confine.none import Unconfined
from loopctl.sandbox.owned import Layout
from loopctl.sandbox.repository import OwnedRepository
from loopctl.settings import SandboxSettings

NAME: Final = "a confined command beyond the bare one / 20 ms median"
LIMIT: Final = 1.0
PAIRS: Final = 120
MOST_S: Final = 0.020


def run() -> dict[str, float]:
    """Return the ratio to the limit, and the medians of both."""
    with tempfile.TemporaryDirectory() as name:
        root = Path(name, "project")
        env = {"PATH": os.environ["PATH"], "HOME": name, "LANG": "C.UTF-8"}
        _make(root, env)
        layout = Layout(root / ".local")
        held = choose(SandboxSettings(confine="require"), root, layout, env)
        repository = OwnedRepository(
            root, layout.root, branch="loop/integration", env=env, confinement=held
        )
        repository.sync()
        box = repository.open_sandbox("T1-main", repository.head())
        taken: dict[str, list[float]] = {"bare": [], "confined": []}
        for _ in range(PAIRS):
            for kind, by in (("bare", Unconfined()), ("confined", held)):
                taken[kind].append(_time(by, box.workdir, box.scratch, env))
        box.close()
    bare, confined = (statistics.median(taken[kind][5:]) for kind in ("bare", "confined"))
    return {"ratio": (confined - bare) / MOST_S, "bare": bare, "confined": confined}


def _time(by: Confinement, workdir: Path, scratch: Path, env: dict[str, str]) -> float:
    begun = time.perf_counter()
    confined = by.wrap(["sh", "-c", "true"], workdir=workdir, writable=[scratch])
    ended = process.run(
        confined.argv,
        cwd=workdir,
        env=env,
        timeout_s=60,
        merge_stderr=True,
        has_keeper=confined.has_keeper,
        most=confined.most,
    )
    taken = time.perf_counter() - begun
    if ended.returncode != 0:
        sys.exit(ended.stdout.decode(errors="replace"))
    return taken


def _make(root: Path, env: dict[str, str]) -> None:
    root.mkdir()
    (root / "README").write_text("words\n")
    who = ("-c", "user.name=a", "-c", "user.email=a@localhost")
    for words in (("init", "-q"), ("add", "."), (*who, "commit", "-q", "-m", "begin")):
        subprocess.run(["git", *words], cwd=root, env=env, check=True, timeout=60)
