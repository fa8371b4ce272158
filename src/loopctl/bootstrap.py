"""The one place where concrete classes meet; what the command line calls.

Opening a project reads files only: no process is started, neither git nor any model library is
imported, so that ``loop status`` starts as fast as a bare command.
"""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from loopctl.domain import Decision, Prospect, RunOptions, TaskId, Wait
from loopctl.events import AnyEvent, RunEnded
from loopctl.ports import ManifestFile, RunRecord
from loopctl.settings import Settings

Listener = Callable[[AnyEvent], None]
"""Called with every event, in order, after it is written; it must not raise."""


@dataclass(frozen=True, slots=True)
class Kept:
    """A tree that the harness keeps for the user.

    Attributes:
        ref: ``refs/loop/RUN/TASK/CANDIDATE``.
        commit: What it points at, in the harness's own repository.
        landed: The same result is on the integration branch.
    """

    ref: str
    commit: str
    landed: bool


@dataclass(frozen=True, slots=True)
class LandedHere:
    """What ``loop land`` did: the branch it moved, from where to where."""

    branch: str
    old: str
    new: str
    commits: int


@dataclass(frozen=True, slots=True)
class Answer:
    """One answer as the user gave it; ``budget`` raises caps of the task (``usd``, ``loops``...)."""

    decision_id: str
    text: str
    budget: Mapping[str, float] | None = None


@dataclass(frozen=True, slots=True)
class Tool:
    """A program that ``loop`` needs, as it was found on the machine.

    Attributes:
        found: Its version; where it is missing or too old, what to do about it.
        is_usable: A run can rely on it.
    """

    name: str
    found: str
    is_usable: bool


class Project:
    """A checkout with its settings, manifest and ``.local/``."""

    checkout: Path
    local: Path
    settings: Settings
    manifest: ManifestFile

    def run(self, options: RunOptions, listeners: Sequence[Listener]) -> RunEnded:
        """Drive the tasks in scope to the end of the run; carries on an interrupted run."""
        raise NotImplementedError

    def resume(self, run_id: str | None, listeners: Sequence[Listener]) -> RunEnded:
        """Drive a run on; the newest one that has something left when none is named."""
        raise NotImplementedError

    def decisions(self, *, open_only: bool = True) -> tuple[Decision, ...]:
        """Return the decisions of all runs, oldest first."""
        raise NotImplementedError

    def answer(self, answers: Sequence[Answer], listeners: Sequence[Listener]) -> RunEnded:
        """Record the answers, all or none, then drive the answered tasks and what waited."""
        raise NotImplementedError

    def prospects(self, options: RunOptions) -> tuple[tuple[Prospect, ...], tuple[Wait, ...]]:
        """Return what would run, in order, and why each other task in scope would not."""
        raise NotImplementedError

    def runs(self) -> tuple[RunRecord, ...]:
        """Return all runs, newest first; one whose owner is dead reads ``interrupted``."""
        raise NotImplementedError

    def events(self, run_id: str) -> Iterable[AnyEvent]:
        """Return all events of a run so far."""
        raise NotImplementedError

    def run_folder(self, run_id: str) -> Path:
        """Return ``.local/runs/<run_id>``."""
        raise NotImplementedError

    def owner(self) -> tuple[int, str] | None:
        """Return pid and run of the process that drives this repository now, if one does."""
        raise NotImplementedError

    def land(self) -> LandedHere:
        """Fast-forward the current branch to the integration branch, or refuse with the reason."""
        raise NotImplementedError

    def kept(self) -> tuple[Kept, ...]:
        """Return the trees that are kept under refs."""
        raise NotImplementedError

    def recover(self, ref: str, branch: str) -> str:
        """Bring a kept tree back as a branch of the user's repository; return its commit."""
        raise NotImplementedError

    def title(self, task: TaskId) -> str:
        """Return a task's title, its id where the manifest does not know it."""
        raise NotImplementedError


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
    raise NotImplementedError


def tools() -> tuple[Tool, ...]:
    """Return python, git and what confines a sandbox, as found; starts processes."""
    raise NotImplementedError


def create_demo(folder: Path | None) -> Path:
    """Return the folder of a new demo project, made in ``folder`` or in a temporary one.

    Raises:
        UserError: The folder is in use, or a tool that the demo's tasks need is missing.
    """
    raise NotImplementedError
