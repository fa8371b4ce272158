"""What the gate adds to the commands that it runs: beside git, type checker and verify by hand.

The project's type checker and verify are commands that take a set time, verify a second. By hand
each runs in a worktree that git has made of the candidate's commit. The gate does the same, with
its judges, confinement left out; the base has been judged by an earlier candidate, once for its
commit, as it is in a run. A pair at a time; the medians count.
"""

import os
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Final

from loopctl.clock import SystemClock
from loopctl.domain import Sha, Task, TaskId
from loopctl.judges.gate import code_gate
from loopctl.records import Candidate
from loopctl.sandbox.confine.none import Unconfined
from loopctl.sandbox.owned import Layout
from loopctl.sandbox.repository import OwnedRepository
from loopctl.settings import GateSettings
from loopctl.store.stores import Stores

NAME: Final = "the gate beside git, typecheck and verify by hand"
LIMIT: Final = 1.15
PAIRS: Final = 7
TYPECHECK: Final = "sleep 0.5"
VERIFY: Final = "sleep 1 && test -f done.txt"


def run() -> dict[str, float]:
    """Return the ratio, the medians in seconds, and how often the base was judged."""
    with tempfile.TemporaryDirectory() as name:
        root = Path(name, "project")
        env = {"PATH": os.environ["PATH"], "HOME": name, "LANG": "C.UTF-8"}
        _make(root, env)
        layout = Layout(root / ".local")
        repository = OwnedRepository(
            root, layout.root, branch="loop/integration", env=env, confinement=Unconfined()
        )
        repository.sync()
        taken: dict[str, list[float]] = {"by hand": [], "gate": []}
        with Stores(layout.root) as stores:
            settings = GateSettings(typecheck=TYPECHECK)
            gate = code_gate(repository, stores.verdicts, settings, clock=SystemClock())
            for number in range(PAIRS + 1):
                candidate = _candidate(repository, number)
                begun = time.perf_counter()
                found = gate.judge(candidate)
                taken["gate"].append(time.perf_counter() - begun)
                if not found.is_passed:
                    sys.exit(f"the gate did not pass: {found.checks[-1].reason}")
                taken["by hand"].append(_by_hand(Path(name), root, candidate, env))
    first = taken["gate"][0]
    by_hand, judged = (statistics.median(taken[kind][1:]) for kind in ("by hand", "gate"))
    return {"ratio": judged / by_hand, "by hand": by_hand, "gate": judged, "with base": first}


def _candidate(repository: OwnedRepository, number: int) -> Candidate:
    head = Sha(repository.head())
    box = repository.open_sandbox(f"T{number}-main", head)
    (box.workdir / "done.txt").write_text(f"{number}\n")
    tree = box.snapshot()
    repository.keep(f"refs/loop/bench/T{number}/main", tree, head, "made")
    box.close()
    task = Task(TaskId(f"T{number}"), "Make it", verify_cmd=VERIFY)
    return Candidate(task=task, name="main", base=head, tree=tree, head=head)


def _by_hand(folder: Path, root: Path, candidate: Candidate, env: dict[str, str]) -> float:
    begun = time.perf_counter()
    place = folder / "by-hand"
    git = ("git", "-C", str(root))
    _run((*git, "worktree", "add", "--detach", "-q", str(place), candidate.head), root, env)
    (place / "done.txt").write_text("by hand\n")
    for command in (TYPECHECK, VERIFY):
        _run(("sh", "-c", command), place, env)
    _run((*git, "worktree", "remove", "--force", str(place)), root, env)
    return time.perf_counter() - begun


def _run(argv: tuple[str, ...], cwd: Path, env: dict[str, str]) -> None:
    subprocess.run(argv, cwd=cwd, env=env, check=True, timeout=60)


def _make(root: Path, env: dict[str, str]) -> None:
    root.mkdir()
    (root / "README").write_text("words\n")
    who = ("-c", "user.name=a", "-c", "user.email=a@localhost")
    for words in (("init", "-q"), ("add", "."), (*who, "commit", "-q", "-m", "begin")):
        subprocess.run(["git", *words], cwd=root, env=env, check=True, timeout=60)
