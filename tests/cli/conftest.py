"""A scripted project behind the one port of the command line, and a runner over it."""

import subprocess
import sys
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

import pytest
from typer.testing import CliRunner, Result

from loopctl import bootstrap
from loopctl.bootstrap import Listener
from loopctl.cli.app import build
from loopctl.domain import (
    Axis,
    Decision,
    DecisionKind,
    Goal,
    Manifest,
    PolicyClass,
    Prospect,
    RunOptions,
    RunStatus,
    Scope,
    Sha,
    Task,
    TaskId,
    TaskStatus,
    Wait,
)
from loopctl.errors import ManifestError
from loopctl.events import (
    AnyEvent,
    DecisionRaised,
    RunEnded,
    RunStarted,
    StatusChanged,
    TaskClaimed,
    TaskLanded,
    TaskStopped,
)
from loopctl.given import Answer, Kept, LandedHere
from loopctl.records import RunRecord
from loopctl.redaction import Redactor
from loopctl.settings import Settings

RUN_ID = "20261130T184500-3f2a"


@dataclass
class ScriptedManifest:
    """The port ``ManifestFile``."""

    path: Path
    tasks: tuple[Task, ...]
    fault: ManifestError | None = None

    def load(self) -> Manifest:
        if self.fault:
            raise self.fault
        return Manifest(Goal("Ship it"), self.tasks)

    def write_status(self, task: TaskId, status: TaskStatus) -> bool:
        raise AssertionError(f"the command line writes no status: {task} {status}")


def story(ids: Sequence[str]) -> list[AnyEvent]:
    """The first task lands, the second defers; others never run."""
    first, second = ids[0], ids[1]
    events: list[AnyEvent] = [
        RunStarted(
            goal="Ship it",
            base="b" * 40,
            branch="loop/integration",
            scope=Scope(),
            tasks=tuple((one, f"Title of {one}") for one in ids),
        ),
        TaskClaimed(task=first, title="x", worker="command"),
        TaskLanded(
            task=first, commit="c" * 40, tree="t", branch="loop/integration", key="k", files=1
        ),
        TaskStopped(task=first, axis=Axis.GOAL, reason="goal", steps=1),
        TaskClaimed(task=second, title="y", worker="command"),
        DecisionRaised(
            task=second,
            id=f"{second}.1",
            kind=DecisionKind.EXTERNAL,
            question="Which provider?",
            best_guess="use OAuth",
        ),
        StatusChanged(
            task=second, old=TaskStatus.IN_PROGRESS, new=TaskStatus.NEEDS_HUMAN, signal="deferred"
        ),
        TaskStopped(task=second, axis=Axis.DEFER, reason="external", steps=1),
    ]
    return events


@dataclass
class ScriptedProject:
    """Stands in for :class:`loopctl.bootstrap.Project`; remembers what it was asked."""

    checkout: Path
    manifest: ScriptedManifest
    settings: Settings = field(default_factory=Settings)
    status: RunStatus = RunStatus.NEEDS_HUMAN
    exit_code: int = 3
    fault: BaseException | None = None
    asked: list[Decision] = field(default_factory=list)
    runs_so_far: tuple[RunRecord, ...] = ()
    kept_trees: tuple[Kept, ...] = ()
    calls: list[tuple[str, object]] = field(default_factory=list)
    pid: tuple[int, str] | None = None
    landed: LandedHere = field(default_factory=lambda: LandedHere("main", "b" * 40, "c" * 40, 2))

    @property
    def local(self) -> Path:
        return self.checkout / ".local"

    def redactor(self) -> Redactor:
        return Redactor({})

    def _play(self, listeners: Sequence[Listener]) -> RunEnded:
        if self.fault:
            raise self.fault
        ended = RunEnded(status=self.status, exit_code=self.exit_code, head="c" * 40)
        events: list[AnyEvent] = [*story([task.id for task in self.manifest.tasks]), ended]
        for seq, event in enumerate(events, 1):
            written = event.model_copy(
                update={"seq": seq, "ts": "2026-11-30T18:45:00.000Z", "run": RUN_ID}
            )
            for listener in listeners:
                listener(written)
        return ended

    def run(
        self, options: RunOptions, listeners: Sequence[Listener], _person: object = None
    ) -> RunEnded:
        self.calls.append(("run", options))
        return self._play(listeners)

    def resume(
        self, run_id: str | None, listeners: Sequence[Listener], _person: object = None
    ) -> RunEnded:
        self.calls.append(("resume", run_id))
        return self._play(listeners)

    def answer(
        self, answers: Sequence[Answer], listeners: Sequence[Listener], _person: object = None
    ) -> RunEnded:
        self.calls.append(("answer", tuple(answers)))
        return self._play(listeners)

    def record_beside(self, _answers: Sequence[Answer]) -> None:
        """No process drives a run of this project."""

    def decisions(self, *, open_only: bool = True) -> tuple[Decision, ...]:
        return tuple(one for one in self.asked if not open_only or one.answer is None)

    def load_manifest(self) -> Manifest:
        return self.manifest.load()

    def prospects(self, options: RunOptions) -> tuple[tuple[Prospect, ...], tuple[Wait, ...]]:
        self.calls.append(("prospects", options))
        first, second = self.manifest.tasks[:2]
        return (
            (
                Prospect(first, "command", PolicyClass.REVERSIBLE),
                Prospect(second, "command", PolicyClass.NEEDS_APPROVAL, waits=(first.id,)),
            ),
            (Wait(TaskId("T501"), "backlog: set its status to todo"),),
        )

    def runs(self) -> tuple[RunRecord, ...]:
        return self.runs_so_far

    def events(self, run_id: str) -> Iterable[AnyEvent]:
        for seq, event in enumerate(story([task.id for task in self.manifest.tasks]), 1):
            yield event.model_copy(
                update={"seq": seq, "ts": "2026-11-30T18:45:00.000Z", "run": run_id}
            )

    def run_folder(self, run_id: str) -> Path:
        return self.local / "runs" / run_id

    def owner(self) -> tuple[int, str] | None:
        return self.pid

    def land(self) -> LandedHere:
        if self.fault:
            raise self.fault
        return self.landed

    def kept(self) -> tuple[Kept, ...]:
        return self.kept_trees

    def recover(self, ref: str, branch: str) -> str:
        self.calls.append(("recover", (ref, branch)))
        return "d" * 40

    def title(self, task: TaskId) -> str:
        return f"Title of {task}"


@dataclass
class Opened:
    """What ``open_project`` was called with."""

    directory: Path
    manifest: Path | None
    overrides: Mapping[str, object]


Loop = Callable[..., Result]


@pytest.fixture
def checkout(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder with git's marker, a manifest, and the shell in it."""
    folder = tmp_path / "check out"
    (folder / "tasks").mkdir(parents=True)
    (folder / "tasks" / "ACTIVE.toml").write_text("# stands in\n")
    (folder / ".git" / "refs" / "heads").mkdir(parents=True)
    (folder / ".git" / "HEAD").write_text("ref: refs/heads/main\n")
    (folder / ".git" / "refs" / "heads" / "main").write_text("a" * 40 + "\n")
    monkeypatch.chdir(folder)
    monkeypatch.setenv("NO_COLOR", "1")
    return folder


@pytest.fixture
def project(checkout: Path) -> ScriptedProject:
    """Three tasks, one run, two decisions (one answered), one kept tree."""
    tasks = (
        Task(TaskId("T440"), "Parse the header", area=("import",)),
        Task(TaskId("T447"), "Log in", status=TaskStatus.NEEDS_HUMAN, area=("auth",)),
        Task(TaskId("T501"), "Later", status=TaskStatus.BACKLOG),
    )
    asked = Decision(
        "T447.1", "T447", RUN_ID, DecisionKind.EXTERNAL, "Which provider?", "use OAuth"
    )
    settled = Decision(
        "T440.1",
        "T440",
        RUN_ID,
        DecisionKind.SCOPE,
        "How far?",
        answer="all",
        answered_at="2026-11-30T18:00:00Z",
    )
    record = RunRecord(
        id=RUN_ID,
        status=RunStatus.NEEDS_HUMAN,
        goal="Ship it",
        base=Sha("b" * 40),
        branch="loop/integration",
        started="2026-11-30T18:45:00.000Z",
        scope=Scope(),
        settings_json="{}",
        settings_hash="",
    )
    return ScriptedProject(
        checkout,
        ScriptedManifest(checkout / "tasks" / "ACTIVE.toml", tasks),
        asked=[settled, asked],
        runs_so_far=(record,),
        kept_trees=(Kept(f"refs/loop/{RUN_ID}/T447/main", "e" * 40, landed=False),),
    )


@pytest.fixture
def opened(project: ScriptedProject, monkeypatch: pytest.MonkeyPatch) -> list[Opened]:
    """Put the scripted project in the place of the real one; collect how it was opened."""
    calls: list[Opened] = []

    def open_project(
        directory: Path,
        *,
        manifest: Path | None = None,
        overrides: Mapping[str, object] | None = None,
    ) -> ScriptedProject:
        calls.append(Opened(directory, manifest, dict(overrides or {})))
        return project

    monkeypatch.setattr(bootstrap, "open_project", open_project)
    return calls


@pytest.fixture
def loop(opened: list[Opened]) -> Loop:
    """Run a command line in this process."""

    def call(*argv: str, stdin: str | None = None) -> Result:
        return CliRunner().invoke(build(argv), list(argv), input=stdin, prog_name="loop")

    return call


Shell = Callable[..., "subprocess.CompletedProcess[str]"]


@pytest.fixture
def shell(tmp_path: Path) -> Shell:
    """Run a real ``loop`` process."""

    def call(
        *argv: str, env: Mapping[str, str] | None = None, cwd: Path = tmp_path
    ) -> "subprocess.CompletedProcess[str]":
        return subprocess.run(
            [sys.executable, "-m", "loopctl", *argv],
            capture_output=True,
            text=True,
            timeout=60,
            check=False,
            cwd=cwd,
            env={"PATH": "/usr/bin:/bin", "HOME": str(tmp_path), **(env or {})},
            stdin=subprocess.DEVNULL,
        )

    return call
