"""What the command line calls: a project, and what can be done with it.

Opening a project reads files only: no process is started, neither git nor any model library is
imported, so that ``loop status`` starts as fast as a bare command. What a run needs beyond that
is put together in ``assembly.py``, imported when the run begins.
"""

import sys
import tempfile
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Final

from loopctl import settings as setting
from loopctl.domain import (
    Decision,
    Limits,
    Manifest,
    PolicyClass,
    Prospect,
    RunOptions,
    RunStatus,
    Task,
    TaskId,
    Wait,
)
from loopctl.errors import MachineError, UserError
from loopctl.given import Answer, Kept, LandedHere, Tool
from loopctl.manifest.toml import TomlManifest
from loopctl.place import Place
from loopctl.records import RunRecord
from loopctl.settings import Settings
from loopctl.store import lease
from loopctl.store.unwritten import UnwrittenFile

if TYPE_CHECKING:
    from loopctl.aim import Aim
    from loopctl.cleaning import Cleaned
    from loopctl.drawing import Source
    from loopctl.engine import answers as engine
    from loopctl.events import AnyEvent, RunEnded
    from loopctl.judges.sensitivity import Sensitivity
    from loopctl.launch import Ask, Launch
    from loopctl.ports import ManifestFile
    from loopctl.recording import Recorded
    from loopctl.redaction import Redactor
    from loopctl.sandbox.background import Begun
    from loopctl.store.auditcheck import Checked
    from loopctl.store.database import Database
    from loopctl.store.eventlog import Tail

Listener = Callable[["AnyEvent"], None]
"""Called with every event, in order, after it is written; it must not raise."""

MANIFEST: Final = "tasks/ACTIVE.toml"
"""Where the manifest is, from the root of the checkout."""


class Project:
    """A checkout with its settings, manifest and ``.local/``."""

    def __init__(self, place: Place) -> None:
        self.place = place
        self.checkout: Path = place.checkout
        self.local: Path = place.local
        self.settings: Settings = place.settings
        self.manifest: ManifestFile = place.file

    def run(
        self, options: RunOptions, listeners: Sequence[Listener], person: "Ask | None" = None
    ) -> "RunEnded":
        """Drive the tasks in scope to the end of the run; carries on an interrupted run.

        Raises:
            UserError: What stands in the way, before anything was begun.
        """
        return self._launch(listeners, person).run(options)

    def pursue(
        self,
        aim: "Aim",
        options: RunOptions,
        listeners: Sequence[Listener],
        person: "Ask | None" = None,
    ) -> "RunEnded":
        """Make tasks of a goal, write them to the manifest, and drive them in a new run.

        Raises:
            UserError: What stands in the way; the manifest is as it was.
        """
        return self._launch(listeners, person).pursue(aim, options)

    def draw(
        self,
        source: "Source",
        options: RunOptions,
        listeners: Sequence[Listener],
        person: "Ask | None" = None,
    ) -> "RunEnded | None":
        """Drive a new run over tasks that are drawn from the tree; ``None`` where there are none.

        Raises:
            UserError: What stands in the way; no run was begun.
        """
        return self._launch(listeners, person).draw(source, options)

    def resume(
        self, run_id: str | None, listeners: Sequence[Listener], person: "Ask | None" = None
    ) -> "RunEnded":
        """Drive a run on; the newest one that has something left when none is named.

        Raises:
            UsageError: There is no such run.
        """
        return self._launch(listeners, person).resume(run_id)

    def answer(
        self, answers: Sequence[Answer], listeners: Sequence[Listener], person: "Ask | None" = None
    ) -> "RunEnded":
        """Record the answers, all or none, then drive the answered tasks and what waited.

        Raises:
            AnswerError: One of them does not fit.
        """
        return self._launch(listeners, person).answer(_given(answers))

    def record_beside(self, answers: Sequence[Answer]) -> "Recorded | None":
        """Record answers for a run that another process drives; see :mod:`loopctl.recording`.

        Raises:
            AnswerError: One of them does not fit; none was recorded.
        """
        from loopctl.recording import record_beside

        return record_beside(self.place, _given(answers)) if self.owner() is not None else None

    def decisions(self, *, open_only: bool = True) -> tuple[Decision, ...]:
        """Return the decisions of all runs, oldest first; the open ones are those that stand."""
        from loopctl.engine.standing import open_decisions
        from loopctl.store.decisions import SqliteDecisions

        with self._database() as database:
            decisions = SqliteDecisions(database).decisions() if database is not None else ()
        if not open_only:
            return decisions
        places = {one.run_id: self.place.of_run(one.run_id) for one in decisions}
        users = [one for one in decisions if places[one.run_id].own is None]
        standing = set(open_decisions(users, self.manifest.load()) if users else ())
        for run_id in {one.run_id for one in decisions} - {one.run_id for one in users}:
            mine = [one for one in decisions if one.run_id == run_id]
            standing |= set(open_decisions(mine, places[run_id].file.load()))
        return tuple(one for one in decisions if one in standing)

    def load_manifest(self) -> Manifest:
        """Return the manifest as the next run will have it.

        Raises:
            ManifestError: It is not well formed; says where.
        """
        return UnwrittenFile(self.local).over(self.manifest.load())

    def prospects(self, options: RunOptions) -> tuple[tuple[Prospect, ...], tuple[Wait, ...]]:
        """Return what would run, in order, and why each other task in scope would not."""
        from loopctl.ability import classifier, obstacle
        from loopctl.engine.consent import policy_class
        from loopctl.manifest.prospects import prospects

        settings, is_attended = self.settings, options.attended
        classify = classifier(settings)

        def policy(task: Task) -> PolicyClass:
            verify_cmd = options.verify_cmd or task.verify_cmd
            found = classify(replace(task, verify_cmd=verify_cmd))
            return policy_class(task, settings.policy.approve, found)

        return prospects(
            self.load_manifest(),
            options.scope,
            default_worker=settings.loop.worker,
            policy=policy,
            unworkable=lambda task: obstacle(task, self.place, settings, is_attended=is_attended),
        )

    def redactor(self) -> "Redactor":
        """Return what takes the user's keys out of all that is shown."""
        return self.place.redactor()

    def runs(self) -> tuple[RunRecord, ...]:
        """Return all runs that have begun, newest first; where the owner is dead, ``interrupted``.

        A goal of which no tasks were made has begun none.
        """
        return tuple(
            replace(record, status=RunStatus.INTERRUPTED)
            if record.status is RunStatus.RUNNING and not self.is_driven(record.id)
            else record
            for record in self._records()
            if self._is_begun(record)
        )

    def _records(self) -> tuple[RunRecord, ...]:
        from loopctl.store.runs import SqliteRuns

        with self._database() as database:
            return SqliteRuns(database).runs() if database is not None else ()

    def is_driven(self, run_id: str) -> bool:
        """Return whether a process drives that run now."""
        owner = self.owner()
        return owner is not None and owner[1] == run_id

    def pause(self, run_id: str) -> None:
        """Ask the process that drives the run to issue no further step."""
        from loopctl.store.pause import PauseFile

        PauseFile(self.run_folder(run_id)).ask()

    def tail(self, run_id: str) -> "Tail":
        """Return what reads the events of a run while they are written."""
        from loopctl.store.eventlog import Tail

        return Tail(self.run_folder(run_id))

    def audit(self, run_id: str | None = None) -> dict[str, "Checked | None"]:
        """Return how the audit chains of all runs stand, or of one; ``None``: its files are gone."""
        from loopctl.store.auditcheck import check

        return {
            record.id: check(self.run_folder(record.id), is_open=record.status is RunStatus.RUNNING)
            if self.run_folder(record.id).is_dir()
            else None
            for record in self._records()
            if run_id in {None, record.id} and self._is_begun(record)
        }

    def _is_begun(self, record: RunRecord) -> bool:
        """Return whether tasks were made of its goal, where it began with one."""
        from loopctl.store.eventlog import has_events

        return record.status is not RunStatus.FAILED or has_events(self.run_folder(record.id))

    def probe_gate(self, ids: Sequence[str] = ()) -> "Iterator[tuple[Task, Sensitivity]]":
        """Yield the named tasks, or all, with what their verify commands made of faults."""
        from loopctl.probing import probed

        return probed(self.place, ids)

    def clean(
        self, refs: Sequence[str] = (), run_id: str | None = None, *, is_dry: bool = False
    ) -> "Cleaned":
        """Remove what is no longer needed, or what is named; return what that was.

        Raises:
            UsageError: Nothing is kept under a named ref; nothing was removed.
            LeaseHeldError: A run is being driven now.
        """
        from loopctl.cleaning import Cleaned, Named, clean

        if not self.local.is_dir():
            return Cleaned()

        def kept() -> list[tuple[str, str, bool]]:
            return [(one.ref, one.commit, one.landed) for one in self.kept()]

        return clean(self.place, kept, Named(refs, run_id), is_dry=is_dry)

    def events(self, run_id: str) -> Iterable["AnyEvent"]:
        """Return all events of a run so far."""
        from loopctl.store.eventlog import read_events

        return read_events(self.run_folder(run_id))

    def run_folder(self, run_id: str) -> Path:
        """Return ``.local/runs/<run_id>``."""
        return self.place.run_folder(run_id)

    def owner(self) -> tuple[int, str] | None:
        """Return pid and run of the process that drives this repository now, if one does."""
        return lease.owner(self.local)

    def land(self) -> LandedHere:
        """Fast-forward the current branch to the integration branch, or refuse with the reason.

        Raises:
            LandingRefusedError: Nothing was changed; says why and what mends it.
            LeaseHeldError: A run is being driven now.
        """
        done = self._launch(()).land()
        return LandedHere(done.branch, done.old, done.new, done.commits, done.files)

    def kept(self) -> tuple[Kept, ...]:
        """Return the trees that are kept under refs."""
        if not self.local.is_dir():
            return ()
        from loopctl.kept import listed

        return tuple(Kept(*entry) for entry in listed(self.place))

    def recover(self, ref: str, branch: str) -> str:
        """Bring a kept tree back as a branch of the user's repository; return its commit.

        Raises:
            RepositoryError: There is no such ref, or the branch exists.
        """
        from loopctl import kept

        return kept.recover(self.place, ref, branch)

    def title(self, task: TaskId) -> str:
        """Return a task's title, its id where the manifest does not know it."""
        if not self.manifest.path.exists():
            return task
        titles = {entry.id: entry.title for entry in self.manifest.load().tasks}
        return titles.get(task, task)

    def _launch(self, listeners: Sequence[Listener], person: "Ask | None" = None) -> "Launch":
        from loopctl.launch import Launch

        return Launch(self.place, listeners, person)

    @contextmanager
    def _database(self) -> Iterator["Database | None"]:
        """Open the database where there is one; looking at a project makes none."""
        from loopctl.store.database import FILE_NAME, is_lost, open_database

        path = self.local / FILE_NAME
        if not path.exists() and not is_lost(path):
            yield None
            return
        database = open_database(path)
        try:
            yield database
        finally:
            database.close()


def open_project(
    directory: Path, *, manifest: Path | None = None, overrides: Mapping[str, object] | None = None
) -> Project:
    """Return the project around ``directory``.

    Args:
        directory: Anywhere in a checkout.
        manifest: Instead of ``tasks/ACTIVE.toml``; relative to ``directory``.
        overrides: Settings of the command line by dotted name: ``{"loop.jobs": 2}``.

    Raises:
        RepositoryError: There is no checkout around it.
        SettingsError: A settings source has faults; all of them.
    """
    from loopctl.sandbox.find import find_checkout

    if not directory.is_dir():
        raise UserError(f"{directory} is no folder; name one with -C")
    checkout = find_checkout(directory)
    path = directory / manifest if manifest is not None else checkout / MANIFEST
    env = setting.environment()
    loaded = setting.load(checkout, overrides or {}, env)
    inside = _inside(path, checkout)
    file = TomlManifest(path, inside or str(path))
    return Project(Place(checkout, checkout / ".local", env, loaded, file, inside))


def _inside(path: Path, checkout: Path) -> str:
    """Return the path below the checkout, with slashes; empty where it is outside."""
    try:
        return path.resolve().relative_to(checkout.resolve()).as_posix()
    except ValueError:
        return ""


def _given(answers: Sequence[Answer]) -> "list[engine.Answer]":
    from loopctl.engine import answers as engine

    return [engine.Answer(one.decision_id, one.text, _limits(one.budget or {})) for one in answers]


def _limits(budget: Mapping[str, float]) -> Limits:
    whole = {name: int(value) for name, value in budget.items() if name in {"tokens", "loops"}}
    return Limits(**{**budget, **whole})  # type: ignore[arg-type]


def tools() -> tuple[Tool, ...]:
    """Return python, git and what confines a sandbox, as found; starts processes."""
    from loopctl.sandbox.confine.trying import tried
    from loopctl.sandbox.git import git_version

    version = ".".join(str(part) for part in sys.version_info[:3])
    try:
        git = Tool("git", git_version(setting.environment().get("PATH", "")), is_usable=True)
    except MachineError as exc:
        git = Tool("git", str(exc), is_usable=False)
    confinement = Tool("confinement", tried(setting.environment()).words, is_usable=True)
    return (Tool("python", version, is_usable=True), git, confinement)


def begin_in_background(argv: Sequence[str]) -> "Begun":
    """Start this very ``loop`` once more with ``argv``; return when it has said its first line.

    It goes on when this process and its terminal are gone; see :mod:`loopctl.sandbox.background`.
    """
    from loopctl.sandbox.background import begin

    # -P: the folder may hold another thing that is called loopctl.
    words = (sys.executable, "-P", "-m", "loopctl", *argv)
    env = {**setting.environment(), setting.BACKGROUND: "1"}
    return begin(words, cwd=Path.cwd(), env=env)


def create_demo(folder: Path | None) -> Path:
    """Return the folder of a new demo project, made in ``folder`` or in a temporary one.

    Raises:
        UserError: The folder is in use, or a tool that the demo's tasks need is missing.
    """
    from loopctl.demo.create import create_project
    from loopctl.sandbox.git import in_folder

    place = folder if folder is not None else Path(tempfile.mkdtemp(prefix="loop-demo-"))
    create_project(place, sys.executable, in_folder(place, setting.environment().get("PATH", "")))
    return place
