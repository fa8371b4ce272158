"""What one task's life costs beside the git and process calls that it cannot do without.

Both sides take the same trivial task to its end on a repository of 200 files: a file is written,
the gate looks for it on the candidate and on the base, and one commit lands. The floor makes the
calls below one after another with a plain git, and keeps no state, events, evidence or capsule.
Rounds alternate, so that both sides meet the same machine.
"""

import os
import statistics
import subprocess
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Final

from loopctl import bootstrap
from loopctl.domain import RunOptions, Scope, TaskId

NAME: Final = "one task's life / the git and process calls it needs"
LIMIT: Final = 3.0
FILES: Final = 200
ROUNDS: Final = 9
WARM_UP: Final = 1

_ZERO: Final = "0" * 40
_TIMEOUT_S: Final = 60
_ENVIRONMENT: Final = {
    "PATH": os.environ.get("PATH", os.defpath),
    "HOME": "/nonexistent",
    "GIT_CONFIG_NOSYSTEM": "1",
    "GIT_CONFIG_GLOBAL": os.devnull,
    **{f"GIT_{who}_NAME": "bench" for who in ("AUTHOR", "COMMITTER")},
    **{f"GIT_{who}_EMAIL": "bench@example.invalid" for who in ("AUTHOR", "COMMITTER")},
}


def run() -> dict[str, float]:
    """Return the ratio of the medians and, in seconds, the medians and the worst of both sides."""
    with tempfile.TemporaryDirectory(prefix="loop-bench-") as folder:
        engine = Engine(make_repository(Path(folder) / "engine"))
        floor = Floor(make_repository(Path(folder) / "floor"), Path(folder) / "own")
        ours: list[float] = []
        bare: list[float] = []
        for number in range(ROUNDS + WARM_UP):
            for side, seconds in ((floor, bare), (engine, ours)):
                start = time.perf_counter()
                side.live(number)
                if number >= WARM_UP:
                    seconds.append(time.perf_counter() - start)
    return {
        "ratio": statistics.median(ours) / statistics.median(bare),
        "loop": statistics.median(ours),
        "bare": statistics.median(bare),
        "loop at worst": max(ours),
        "bare at worst": max(bare),
    }


class Engine:
    """The harness as the command line calls it, in this process."""

    def __init__(self, checkout: Path) -> None:
        self._project = bootstrap.open_project(checkout)

    def live(self, number: int) -> None:
        """Take one task to its end."""
        scope = Scope(ids=(TaskId(f"T{number}"),))
        ended = self._project.run(RunOptions(scope=scope), listeners=())
        assert ended.exit_code == 0, ended
        assert ended.head, "nothing landed"


class Floor:
    """The calls of one task's life, each of which is needed: without it a promise breaks."""

    def __init__(self, user: Path, own: Path) -> None:
        self._user = user
        self._own = own
        self._trees = own.with_name("worktrees")
        call(["git", "clone", "--quiet", "--bare", str(user), str(own)], user)

    def live(self, number: int) -> None:
        """Take one task to its end."""
        self._fetch()
        head, tip = self._head()
        tree = self._step(number, head)
        self._gate(number, tree, head)
        self._land(number, tree, head, tip)

    def _fetch(self) -> None:
        """The user may have committed since the last time."""
        heads = "+refs/heads/*:refs/heads/*"
        self._git("fetch", "--quiet", "--no-tags", str(self._user), heads)

    def _head(self) -> tuple[str, str]:
        """Return what the task starts from, and where the integration branch is."""
        refs = ["git", "for-each-ref", "--format=%(objectname) %(refname)", "refs/heads"]
        said = call(refs, self._user)
        tips = {name: sha for sha, name in (line.split() for line in said.splitlines())}
        tip = tips.get("refs/heads/loop/integration", _ZERO)
        return (tips["refs/heads/main"] if tip == _ZERO else tip), tip

    def _step(self, number: int, head: str) -> str:
        """Return the tree that the command left, kept under a ref."""
        folder = self._open("task", head)
        call(["/bin/sh", "-c", command(number)], folder)
        tree = self._kept(number, folder, head)
        self._git("worktree", "remove", "--force", str(folder))
        return tree

    def _kept(self, number: int, folder: Path, head: str) -> str:
        inside = (f"--git-dir={self._own}/worktrees/{folder.name}", f"--work-tree={folder}")
        self._git(*inside, "add", "--all")
        tree = self._git(*inside, "write-tree")
        kept = self._git("commit-tree", "-p", head, "-m", "step", tree)
        self._git("update-ref", f"refs/loop/run/T{number}/main", kept)
        return tree

    def _gate(self, number: int, tree: str, head: str) -> None:
        """The diff must be looked at, and verify must pass now; was it red before?"""
        assert self._git("diff-tree", "-r", "-z", f"{head}^{{tree}}", tree)
        judged = self._git("commit-tree", "-p", head, "-m", "gate", tree)
        for name, commit, expected in (("candidate", judged, 0), ("base", head, 1)):
            folder = self._open(name, commit)
            call(["/bin/sh", "-c", verify(number)], folder, expected)
            self._git("worktree", "remove", "--force", str(folder))

    def _land(self, number: int, tree: str, head: str, tip: str) -> None:
        """One commit, brought over and put on the branch by compare-and-swap."""
        commit = self._git("commit-tree", "-p", head, "-m", f"T{number}", tree)
        self._git("update-ref", "refs/loop/landing", commit)
        fetch = ["git", "fetch", "--quiet", "--no-tags", "--no-write-fetch-head", str(self._own)]
        call([*fetch, "+refs/loop/landing:refs/loop/incoming"], self._user)
        branch = "refs/heads/loop/integration"
        call(["git", "update-ref", branch, commit, tip], self._user)

    def _open(self, name: str, commit: str) -> Path:
        folder = self._trees / name
        self._git("worktree", "add", "--quiet", "--no-checkout", "--detach", str(folder), commit)
        call(["git", "read-tree", "-m", "-u", "HEAD"], folder)
        return folder

    def _git(self, *words: str) -> str:
        return call(["git", *words], self._own)


def call(argv: Sequence[str], folder: Path, expected: int = 0) -> str:
    """Return what a command says; it must end with ``expected``."""
    ended = subprocess.run(
        argv,
        cwd=folder,
        env=_ENVIRONMENT,
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        timeout=_TIMEOUT_S,
        check=False,
    )
    assert ended.returncode == expected, (argv, ended)
    return ended.stdout.strip()


def command(number: int) -> str:
    """Return the command of a task."""
    return f"echo done > done-{number}.txt"


def verify(number: int) -> str:
    """Return the verify command of a task."""
    return f"test -f done-{number}.txt"


def make_repository(folder: Path) -> Path:
    """Return a repository of ``FILES`` files, with a manifest of one task a round."""
    for number in range(FILES - 1):
        path = folder / f"package{number % 10}" / f"module{number}.py"
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(f"VALUE = {number}\n" * 40)
    (folder / "tasks").mkdir()
    tables = (
        f'[[task]]\nid = "T{number}"\ntitle = "Write a file"\nworker = "command"\n'
        f'command = "{command(number)}"\nverify_cmd = "{verify(number)}"\n'
        for number in range(ROUNDS + WARM_UP)
    )
    (folder / "tasks/ACTIVE.toml").write_text("schema = 1\n\n" + "\n".join(tables))
    call(["git", "init", "--quiet", "--initial-branch=main"], folder)
    call(["git", "add", "--all"], folder)
    call(["git", "commit", "--quiet", "--message", "begin"], folder)
    return folder
