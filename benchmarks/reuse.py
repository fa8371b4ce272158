"""What a worker's sandbox of 5,000 files costs, made and removed, where one is spare.

Beside a plain ``git worktree add`` of the same files, in turn, in the same run and on the same
disk. The limit is half of the plain time at the median, for both together.
"""

import statistics
import tempfile
import time
from pathlib import Path
from typing import Final

from benchmarks.life import call
from benchmarks.worktrees import make_checkout
from loopctl.sandbox.repository import OwnedRepository

NAME: Final = "a worker's next sandbox of 5,000 files / git worktree add"
LIMIT: Final = 0.5
ROUNDS: Final = 9


def run() -> dict[str, float]:
    """Return the ratio of the medians, and the medians, in seconds."""
    with tempfile.TemporaryDirectory(prefix="loop-bench-") as name:
        checkout = make_checkout(Path(name, "user"))
        plain = Path(name, "plain")
        call(["git", "clone", "--quiet", "--bare", str(checkout), str(plain)], checkout)
        repository = OwnedRepository(
            checkout, checkout / ".local", branch="loop/integration", env={"PATH": "/usr/bin:/bin"}
        )
        repository.sync()
        _worked(repository, 0)
        rounds = [_round(repository, plain, number) for number in range(1, ROUNDS + 1)]
        repository.drain()
    reused, added = map(statistics.median, zip(*rounds, strict=True))
    return {"ratio": reused / added, "made and removed": reused, "plain worktree add": added}


def _worked(repository: OwnedRepository, number: int) -> float:
    """Return what making and closing took; a worker has changed a little meanwhile."""
    start = time.perf_counter()
    sandbox = repository.open_sandbox(
        f"T{number}", repository.head(), rescue_ref="refs/loop/kept/bench/rescued"
    )
    made = time.perf_counter() - start
    (sandbox.workdir / "new").write_text("new\n")
    (sandbox.workdir / "d1" / "f1.txt").write_text(f"{number}\n")
    sandbox.snapshot()
    start = time.perf_counter()
    sandbox.close()
    return made + time.perf_counter() - start


def _round(repository: OwnedRepository, plain: Path, number: int) -> tuple[float, float]:
    reused = _worked(repository, number)
    folder = plain.parent / f"plain-{number}"
    git = ["git", "--git-dir", str(plain), "worktree"]
    start = time.perf_counter()
    call([*git, "add", "--quiet", "--detach", str(folder), "HEAD"], plain)
    added = time.perf_counter() - start
    call([*git, "remove", str(folder)], plain)
    return reused, added
