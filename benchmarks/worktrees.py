"""What the sandbox of a task of 5,000 files costs beside a plain ``git worktree add``.

Both are made and removed in turn, in the same run and on the same disk. The limit is on making one:
1.2 times the plain time at the median.
"""

import statistics
import subprocess
import tempfile
import time
from pathlib import Path
from typing import Final

from benchmarks.life import call
from loopctl.sandbox.repository import OwnedRepository

NAME: Final = "a sandbox of 5,000 files / plain git worktree add"
LIMIT: Final = 1.2
FILES: Final = 5000
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
        rounds = [_round(repository, plain, number) for number in range(ROUNDS)]
    made, removed, plain_made, plain_removed = map(statistics.median, zip(*rounds, strict=True))
    return {
        "ratio": made / plain_made,
        "made": made,
        "removed": removed,
        "plain worktree add": plain_made,
        "plain worktree remove": plain_removed,
    }


def make_checkout(folder: Path) -> Path:
    """Return a new repository of 5,000 files in 100 folders."""
    folder.mkdir()
    for number in range(FILES):
        path = folder / f"d{number % 100}" / f"f{number}.txt"
        path.parent.mkdir(exist_ok=True)
        path.write_text(f"{number}\n" * 200)
    for argv in (
        ["git", "init", "--quiet", "--initial-branch=main"],
        ["git", "add", "--all"],
        ["git", "commit", "--quiet", "--message", "begin"],
    ):
        call(argv, folder)
    return folder


def _round(repository: OwnedRepository, plain: Path, number: int) -> tuple[float, ...]:
    start = time.perf_counter()
    sandbox = repository.open_sandbox(f"T{number}", repository.head())
    made = time.perf_counter()
    sandbox.close()
    removed = time.perf_counter()
    folder = plain.parent / f"plain-{number}"
    git = ["git", "--git-dir", str(plain), "worktree"]
    begin = time.perf_counter()
    call([*git, "add", "--quiet", "--detach", str(folder), "HEAD"], plain)
    added = time.perf_counter()
    subprocess.run([*git, "remove", str(folder)], check=True, timeout=60)
    return made - start, removed - made, added - begin, time.perf_counter() - added
