import os
import subprocess
import sys
import textwrap
import threading
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

import pytest

from loopctl.clock import SystemClock
from loopctl.domain import Baseline, Sha, Task, TaskId
from loopctl.judges.gate import CodeGate, code_gate
from loopctl.ports import Repository
from loopctl.records import Candidate
from loopctl.sandbox.repository import OwnedRepository
from loopctl.settings import GateSettings
from loopctl.verdict import CheckResult, GateResult

PYTEST = f"env PYTEST_DISABLE_PLUGIN_AUTOLOAD=1 {sys.executable} -m pytest -q -p no:cacheprovider"
SUM_TEST = "import calc\n\ndef test_sum():\n    assert calc.total([1, 2]) == 3\n"
NO_COMMIT = Sha("")


@dataclass
class DictCache:
    """Remembers as the store does, and counts."""

    kept: dict[tuple[str, str, str], CheckResult] = field(default_factory=dict)
    hits: int = 0

    def get(self, tree: str, check: str, command: str) -> CheckResult | None:
        found = self.kept.get((tree, check, command))
        self.hits += found is not None
        return found

    def put(self, tree: str, check: str, command: str, result: CheckResult) -> None:
        self.kept[tree, check, command] = result


@dataclass
class Bench:
    """A project, its owned repository, and what a test does with both."""

    root: Path
    env: dict[str, str]
    base: Sha = field(default=NO_COMMIT)
    cache: DictCache = field(default_factory=DictCache)
    cancel: threading.Event = field(default_factory=threading.Event)
    pytest: str = PYTEST

    def git(self, *args: str, stdin: bytes = b"", env: Mapping[str, str] | None = None) -> str:
        done = subprocess.run(
            ["git", *args],
            cwd=self.root,
            env={**self.env, **(env or {})},
            input=stdin,
            check=True,
            capture_output=True,
            timeout=60,
        )
        return done.stdout.decode(errors="surrogateescape").rstrip("\n")

    def commit(self, files: Mapping[str, str]) -> Sha:
        for name, text in files.items():
            path = self.root / name
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(textwrap.dedent(text))
        self.git("add", "-A")
        self.git("commit", "-q", "--allow-empty", "-m", "work")
        return Sha(self.git("rev-parse", "HEAD"))

    def start(self, files: Mapping[str, str]) -> "Bench":
        self.base = self.commit(files)
        self.repository: Repository = self.owned()
        self.repository.sync()
        return self

    def owned(self) -> OwnedRepository:
        return OwnedRepository(
            self.root,
            self.root / ".local",
            branch="loop/integration",
            env=self.env,
            cancel=self.cancel,
        )

    def own_git(self, *args: str, stdin: bytes = b"", index: str = "") -> str:
        """Run git on the harness's own repository, with an index of the test's."""
        env = {"GIT_INDEX_FILE": str(self.root.parent / f"index{index}")}
        return self.git(
            f"--git-dir={self.root}/.local/git", "-c", "core.protectHFS=false", "-c", "core.protectNTFS=false", *args,
            stdin=stdin, env=env,
        )  # fmt: skip

    def blob(self, text: str) -> str:
        data = textwrap.dedent(text).encode(errors="surrogateescape")
        return self.own_git("hash-object", "-w", "--stdin", stdin=data)

    def tree(
        self,
        files: Mapping[str, str] | None = None,
        *,
        drop: Sequence[str] = (),
        mode: str = "100644",
    ) -> str:
        """Return the tree of the base with files written and dropped, made in an index."""
        self.own_git("read-tree", self.base)
        for path in drop:
            self.own_git("rm", "--cached", "-q", "-r", "--", path)
        for path, text in (files or {}).items():
            self.own_git("update-index", "--add", "--cacheinfo", f"{mode},{self.blob(text)},{path}")
        return self.own_git("write-tree")

    def mktree(self, entries: Sequence[tuple[str, str, str]]) -> str:
        """Return the base's root tree with entries (mode, object, name) that no index takes."""
        listed = self.own_git("ls-tree", "-z", self.base)
        lines = [line for line in listed.split("\0") if line]
        for mode, name_of, name in entries:
            kind = {"040000": "tree", "160000": "commit"}.get(mode, "blob")
            lines.append(f"{mode} {kind} {name_of}\t{name}")
        data = "".join(f"{line}\0" for line in lines).encode(errors="surrogateescape")
        return self.own_git("mktree", "-z", "--missing", stdin=data)

    def gate(self, *, setup_cmd: str = "", **settings: object) -> CodeGate:
        chosen = {"typecheck": "off", "timeout_s": 60, **settings}
        return code_gate(
            self.repository,
            self.cache,
            GateSettings(**chosen),  # type: ignore[arg-type]
            clock=SystemClock(),
            setup_cmd=setup_cmd,
        )

    def judge(
        self,
        tree: str,
        verify: str | None = None,
        *,
        head: Sha | None = None,
        may_edit: tuple[str, ...] = (),
        baseline: Baseline | None = None,
        approved: tuple[str, ...] = (),
        gate: CodeGate | None = None,
    ) -> GateResult:
        task = Task(
            TaskId("T1"),
            "title",
            verify_cmd=verify,
            may_edit=may_edit,
            baseline=baseline,
            approved=approved,
        )
        candidate = Candidate(task, "main", self.base, tree, head or self.base)
        result = (gate or self.gate()).judge(candidate)
        assert self.checkouts() == []
        return result

    def checkouts(self) -> list[str]:
        folder = self.root / ".local" / "worktrees"
        return sorted(path.name for path in folder.iterdir())


def _make(folder: Path) -> Bench:
    home = folder / "home"
    home.mkdir()
    (home / ".gitconfig").write_text(
        "[user]\n\tname = Some One\n\temail = someone@example.org\n[init]\n\tdefaultBranch = main\n"
    )
    root = folder / "project"
    root.mkdir()
    made = Bench(root, {"PATH": os.environ["PATH"], "HOME": str(home), "LANG": "C.UTF-8"})
    made.git("init", "-q")
    return made


@pytest.fixture
def bench(tmp_path: Path) -> Bench:
    """An empty project; ``start`` gives it files."""
    return _make(tmp_path)


@pytest.fixture(scope="module")
def shared_bench(tmp_path_factory: pytest.TempPathFactory) -> Bench:
    """An empty project of all the tests of a file, whose bases are judged once."""
    return _make(tmp_path_factory.mktemp("shared"))


@pytest.fixture(scope="module")
def shared_bench_of_red_tests(tmp_path_factory: pytest.TempPathFactory) -> Bench:
    """Likewise, for a base whose tests fail."""
    return _make(tmp_path_factory.mktemp("red"))


@pytest.fixture
def calc(bench: Bench) -> Bench:
    """A small project with one red test, and one that is green."""
    return bench.start(
        {
            "calc.py": "def total(numbers):\n    return 0\n",
            "tests/conftest.py": "",
            "tests/test_calc.py": SUM_TEST,
            "tests/test_steady.py": "def test_steady():\n    pass\n",
        }
    )
