"""A user's project and its manifest, driven by the real thing; after each command all is as before.

``project.run()`` drives in this process, ``project.loop()`` runs a whole command line there, and
with ``real`` or ``project.start()`` it is a process of its own, ``python -m loopctl``. They
compare the user's whole checkout and git folder byte for byte with what they were, and see to it
that no process, worktree or private folder stays behind.
"""

import contextlib
import json
import os
import re
import signal
import subprocess
import sys
import tempfile
import time
import tomllib
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner

from loopctl import bootstrap
from loopctl.cli.app import build
from loopctl.domain import Decision, RunOptions, Scope, TaskId
from loopctl.errors import LoopctlError
from loopctl.events import AnyEvent, RunEnded
from loopctl.given import Answer

INTEGRATION = "loop/integration"
PATIENCE_S = 60.0

_STATUS = re.compile(rb'^status = "[a-z-]+"\r?\n', re.MULTILINE)
_LOCAL = "/.local/"
_OURS = ("logs/refs/heads/loop/", "refs/heads/loop/", "objects/")


@dataclass
class Done:
    """How a command ended, as its caller sees it."""

    code: int
    out: str
    err: str


@dataclass
class Outcome:
    """How a drive in this process ended: as the command line would have said it."""

    code: int
    message: str = ""
    events: list[AnyEvent] = field(default_factory=list)
    ended: RunEnded | None = None

    def of(self, kind: str) -> list[Any]:
        return [event for event in self.events if event.type == kind]

    @property
    def notices(self) -> str:
        return "\n".join(event.text for event in self.of("noticed"))


@dataclass
class Project:
    """A user's checkout."""

    root: Path
    env: dict[str, str]

    # --- as a user works on it

    def git(self, *args: str, cwd: Path | None = None) -> str:
        done = subprocess.run(
            ["git", *args],
            cwd=cwd or self.root,
            env=self.env,
            check=True,
            capture_output=True,
            timeout=PATIENCE_S,
        )
        return done.stdout.decode(errors="surrogateescape").rstrip("\n")

    def write(self, name: str, content: str | bytes) -> Path:
        path = self.root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(content if isinstance(content, bytes) else content.encode())
        return path

    def commit(self, message: str = "work") -> str:
        self.git("add", "-A")
        self.git("commit", "-q", "--allow-empty", "-m", message)
        return self.git("rev-parse", "HEAD")

    def manifest(self, *tasks: str, head: str = "") -> None:
        self.write("tasks/ACTIVE.toml", "\n".join(["schema = 1\n", head, *tasks]))

    def settings(self, text: str) -> None:
        self.write("loop.toml", text)

    def read(self, name: str) -> str:
        return (self.root / name).read_text()

    def task(self, task_id: str, command: str | None = "echo made > made", **keys: object) -> str:
        """Return the text of a task; its verify command is there to pass."""
        fields = {
            "id": task_id,
            "title": f"Title of {task_id}",
            "worker": "command",
            "command": command,
            "verify_cmd": "true",
            **keys,
        }
        lines = [f"{key} = {_toml(value)}" for key, value in fields.items() if value is not None]
        return "\n".join(["[[task]]", *lines, ""])

    # --- what there is to see

    def status(self, task: str) -> str:
        listed = tomllib.loads(self.read("tasks/ACTIVE.toml"))["task"]
        return str(next(one.get("status", "todo") for one in listed if one["id"] == task))

    def landed(self) -> list[str]:
        """Ids of the tasks on the integration branch, the first one first."""
        if not self.git("branch", "--list", INTEGRATION):
            return []
        said = self.git(
            "log", "--reverse", "--format=%(trailers:key=Loop-Task,valueonly)", INTEGRATION
        )
        return said.split()

    def on_branch(self, name: str) -> str:
        return self.git("show", f"{INTEGRATION}:{name}")

    def own(self, *args: str) -> str:
        return self.git(f"--git-dir={self.root}/.local/git", *args)

    def kept(self) -> dict[str, str]:
        """Return what ``loop recover`` lists: refs and their commits."""
        return {one.ref: one.commit for one in bootstrap.open_project(self.root).kept()}

    def kept_file(self, name: str, *, among: str = "") -> list[str]:
        """Return the contents that a file has in the kept trees that have it.

        ``among`` is looked for behind the name of the run, which holds letters and digits too.
        """
        found = []
        for ref, commit in self.kept().items():
            with contextlib.suppress(subprocess.CalledProcessError):
                if among in ref.split("/", 3)[3]:
                    found.append(self.own("show", f"{commit}:{name}"))
        return found

    def decisions(self) -> tuple[Decision, ...]:
        return bootstrap.open_project(self.root).decisions()

    def run_statuses(self) -> list[str]:
        return [str(record.status) for record in bootstrap.open_project(self.root).runs()]

    # --- driven

    def run(
        self,
        *ids: str,
        untouched: bool = True,
        listeners: Sequence[Callable[[AnyEvent], None]] = (),
        overrides: dict[str, object] | None = None,
        **options: Any,
    ) -> Outcome:
        """Drive in this process."""
        before = self.picture()
        outcome = Outcome(0)
        scope = Scope(ids=tuple(TaskId(task) for task in ids))
        try:
            opened = bootstrap.open_project(self.root, overrides=overrides)
            outcome.ended = opened.run(
                RunOptions(scope=scope, **options), [outcome.events.append, *listeners]
            )
            outcome.code = outcome.ended.exit_code
        except LoopctlError as error:
            outcome.code, outcome.message = error.exit_code, str(error)
        self.check(before if untouched else None)
        return outcome

    def answer(self, decision: str, text: str) -> Outcome:
        """Answer in this process, which drives on."""
        before = self.picture()
        outcome = Outcome(0)
        given = Answer(decision, text)
        outcome.ended = bootstrap.open_project(self.root).answer([given], [outcome.events.append])
        outcome.code = outcome.ended.exit_code
        self.check(before)
        return outcome

    def start(self, *argv: str, cwd: Path | None = None) -> "subprocess.Popen[bytes]":
        """Start ``loop``; the caller ends it."""
        return subprocess.Popen(
            [sys.executable, "-m", "loopctl", *argv],
            cwd=cwd or self.root,
            env=self.env,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
        )

    def loop(
        self, *argv: str, untouched: bool = True, cwd: Path | None = None, real: bool = False
    ) -> Done:
        """Run a whole command line to its end, in this process or as a real one."""
        before = self.picture() if untouched else None
        done = self.finish(self.start(*argv, cwd=cwd)) if real else self._invoke(argv, cwd)
        self.check(before)
        return done

    def _invoke(self, argv: Sequence[str], cwd: Path | None) -> Done:
        with contextlib.chdir(cwd or self.root):
            result = CliRunner().invoke(build(argv), list(argv), prog_name="loop")
        if result.exception is not None and not isinstance(result.exception, SystemExit):
            raise result.exception
        return Done(result.exit_code, result.stdout, result.stderr)

    @staticmethod
    def finish(process: "subprocess.Popen[bytes]") -> Done:
        """Wait for a process for a bounded time; return how it ended."""
        try:
            out, err = process.communicate(timeout=PATIENCE_S)
        except subprocess.TimeoutExpired:
            process.kill()
            out, err = process.communicate()
            raise AssertionError(f"loop did not end: {out!r} {err!r}") from None
        return Done(process.returncode, out.decode(errors="replace"), err.decode(errors="replace"))

    @staticmethod
    def is_alive(pid: int) -> bool:
        """Return whether a process is there and is more than a zombie."""
        try:
            stat = Path(f"/proc/{pid}/stat").read_text(errors="replace")
        except OSError:
            return False
        return stat.rpartition(")")[2].split()[0] not in {"Z", "X"}

    @staticmethod
    def wait_for(condition: Callable[[], object]) -> None:
        """Come back when something holds; fail when it does not for too long."""
        deadline = time.monotonic() + PATIENCE_S
        while not condition():
            assert time.monotonic() < deadline, "it never came true"
            time.sleep(0.01)

    # --- what must hold after each command

    def check(self, before: dict[str, Any] | None) -> None:
        if before is not None:
            now = self.picture()
            changed = {
                name for name in before.keys() | now.keys() if before.get(name) != now.get(name)
            }
            assert changed == set()
        assert self.leftovers() == []

    def leftovers(self) -> list[str]:
        """Return what a drive that has ended left behind: folders, and processes in them."""
        local = self.root / ".local"
        places = ("worktrees", "indexes", "exchange", "origins", "trash", "git/worktrees")
        found = [str(path) for place in places for path in (local / place).glob("*")]
        found += [
            str(path)
            for mark in ("carry", "wip", "clone", "rescue")
            for path in local.glob(f"{mark}-*")
        ]
        found += [str(path) for path in Path(tempfile.gettempdir()).glob(f"loop-{os.getuid()}-*")]
        return found + [f"process {pid}" for pid in processes_below(self.root)]

    def picture(self) -> dict[str, Any]:
        """Return all that a run must leave as it is, by path: kind, mode and content."""
        seen: dict[str, Any] = {}
        for where, folders, files in os.walk(self.root):
            if Path(where) == self.root:
                folders[:] = [name for name in folders if name != ".local"]
            for name in (*folders, *files):
                path = Path(where, name)
                shown = str(path.relative_to(self.root))
                if not _is_ours(shown):
                    seen[shown] = _look(path)
        return seen


def _is_ours(shown: str) -> bool:
    inside = f"{shown}/".removeprefix(".git/")
    return shown.startswith(".git/") and inside.startswith((*_OURS, "info/exclude/"))


def _look(path: Path) -> tuple[object, ...]:
    mode = path.lstat().st_mode
    if path.is_symlink():
        return mode, str(path.readlink())
    if not path.is_file():
        return (mode,)
    content = path.read_bytes()
    return mode, _STATUS.sub(b"", content) if path.name == "ACTIVE.toml" else content


def processes_below(folder: Path) -> list[int]:
    """Return the live processes that work below a folder, zombies left out."""
    found = []
    for entry in Path("/proc").iterdir():
        if entry.name.isdigit():
            with contextlib.suppress(OSError):
                where = Path(str((entry / "cwd").readlink()).removesuffix(" (deleted)"))
                state = (entry / "stat").read_text(errors="replace").rpartition(")")[2].split()[0]
                if where.is_relative_to(folder / ".local") and state != "Z":
                    found.append(int(entry.name))
    return found


def _toml(value: object) -> str:
    if isinstance(value, dict):
        pairs = ", ".join(f"{key} = {_toml(inner)}" for key, inner in value.items())
        return f"{{ {pairs} }}"
    if isinstance(value, list):
        return f"[{', '.join(_toml(inner) for inner in value)}]"
    return json.dumps(value, ensure_ascii=False)


@pytest.fixture
def env(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> dict[str, str]:
    home = tmp_path / "home"
    home.mkdir()
    (home / ".gitconfig").write_text(
        "[user]\n\tname = Some One\n\temail = someone@example.org\n[init]\n\tdefaultBranch = main\n"
        '[protocol "file"]\n\tallow = always\n'
    )
    scratch = tmp_path / "tmp"
    scratch.mkdir()
    found = {
        "PATH": os.environ["PATH"],
        "HOME": str(home),
        "LANG": "C.UTF-8",
        "TMPDIR": str(scratch),
        "NO_COLOR": "1",
        # The commands of these tests leave marks outside, and wait for files there.
        "LOOP_SET_SANDBOX__CONFINE": "off",
    }
    for name in list(os.environ):
        if name.startswith(("GIT_", "LOOP_")):
            monkeypatch.delenv(name)
    for name, value in found.items():
        monkeypatch.setenv(name, value)
    monkeypatch.setattr(tempfile, "tempdir", None)
    return found


@pytest.fixture
def make(tmp_path: Path, env: dict[str, str]) -> Callable[..., Project]:
    """Make a project in a folder of its own, with one commit."""

    def made(where: Path | None = None, *init: str) -> Project:
        project = Project(where or tmp_path / "project", env)
        project.root.mkdir(parents=True, exist_ok=True)
        project.git("init", "-q", *init)
        project.write("README.md", "A project\n")
        project.write("src/app.txt", "one\ntwo\nthree\n")
        project.write(".gitignore", "*.log\n")
        project.manifest(project.task("T1"))
        project.commit("start")
        return project

    return made


@pytest.fixture
def project(make: Callable[..., Project]) -> Project:
    """A small project whose manifest has one task."""
    return make()


@pytest.fixture
def started(project: Project) -> Iterator[Callable[..., "subprocess.Popen[bytes]"]]:
    """Start ``loop`` processes that are ended with the test."""
    processes: list[subprocess.Popen[bytes]] = []

    def start(*argv: str) -> "subprocess.Popen[bytes]":
        processes.append(project.start(*argv))
        return processes[-1]

    yield start
    for process in processes:
        if process.poll() is None:
            process.send_signal(signal.SIGKILL)
            process.communicate()
