"""Every protocol of the house: read this file first.

The engine knows these and nothing behind them; concrete classes meet in ``bootstrap.py`` alone.
Those of tool calls and their ledger are in ``toolports.py``.
Results are values; broken machinery is an exception of ``errors.py``.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Protocol

from loopctl.domain import Addition, ExecResult, Manifest, Sha, Task, TaskId, TaskStatus, Wait
from loopctl.records import (
    Candidate,
    Carried,
    Confined,
    Landed,
    Rescued,
)
from loopctl.steps import Message, StepEvent, StepRequest
from loopctl.trees import Change, TreeFile
from loopctl.verdict import CheckResult, GateResult

if TYPE_CHECKING:
    from loopctl.events import AnyEvent

Emit = Callable[["AnyEvent"], "AnyEvent"]
"""Append an event; returns it as written, numbered and stamped, once it is written."""


Describe = Callable[[GateResult], str]
"""The text that a failing gate's evidence becomes for the worker."""


class Worker(Protocol):
    """Does one step and forgets; any step may run in a fresh process, or on another machine."""

    @property
    def makes_plans(self) -> bool:
        """Whether a planning step makes sense; else a task is one todo."""
        ...

    def execute_step(self, request: StepRequest, sandbox: "Sandbox") -> Iterator[StepEvent]:
        """Yield what happened; exactly one ``WorkerProgress`` comes last.

        Raises:
            SandboxError: The sandbox is gone; the step did not happen.
            CancelledError: The run was asked to stop; its processes have been ended.
        """
        ...


class Sandbox(Protocol):
    """A git worktree and the confinement around it: one candidate's, or one gate's.

    Commands run without a terminal, with an allow-listed environment, in a process group of
    their own, and are gone with all their children when :meth:`run` returns.
    """

    @property
    def name(self) -> str:
        """Unique in the repository."""
        ...

    @property
    def workdir(self) -> Path:
        """The worktree's root."""
        ...

    @property
    def inside(self) -> Path:
        """Where the worktree's root is for its commands; outputs name their files by it."""
        ...

    @property
    def scratch(self) -> Path:
        """The private folder that commands know as ``TMPDIR``; goes with the sandbox."""
        ...

    @property
    def base(self) -> Sha:
        """The commit that it was made from."""
        ...

    def run(
        self,
        command: str | Sequence[str],
        *,
        timeout_s: float,
        env: Mapping[str, str] | None = None,
    ) -> ExecResult:
        """Return how ``command`` (a string is for ``sh -c``) ended; stderr is merged into stdout.

        ``env`` is added to the allow-listed environment. At most 10 MiB of output are kept.

        Raises:
            SandboxError: The worktree is gone.
            CancelledError: The run was asked to stop.
        """
        ...

    def exchange(self) -> "Exchange":
        """Return the folder pair through which the running step and the harness speak."""
        ...

    def snapshot(self) -> str:
        """Return the tree id of the worktree's files, ignored ones left out.

        Raises:
            SandboxError: The worktree is gone, or holds something that git must not touch
                (a nested repository, a path that git refuses); the message says what.
        """
        ...

    def left_out(self) -> str:
        """Return in words what the last snapshot left out; empty where that is nothing.

        Ignored files that were written, and files in the folder of a submodule, some by name.
        Caches and shared folders do not count. Never raises.
        """
        ...

    def restore(self, tree: str) -> None:
        """Make the worktree's files those of ``tree``, remaking the worktree where it is gone."""
        ...

    def rescue(self) -> Rescued:
        """Save the files under a ref of their own, whatever state they are in; never raises.

        For a step that was cut short, or whose files :meth:`snapshot` refuses. Where that did not
        save all of them, :meth:`close` leaves the worktree in its place.
        """
        ...

    def close(self) -> None:
        """Remove the worktree. What was kept under refs stays. Never raises for a missing one."""
        ...


class Confinement(Protocol):
    """What keeps the processes of a sandbox inside it."""

    @property
    def is_holding(self) -> bool:
        """Commands are kept inside by something."""
        ...

    @property
    def has_mounts(self) -> bool:
        """Shared folders are mounted on empty ones of the worktree; else links lead to them."""
        ...

    def wrap(
        self,
        argv: Sequence[str],
        *,
        workdir: Path,
        writable: Sequence[Path],
        kept: Sequence[Path] = (),
        network: bool = False,
    ) -> Confined:
        """Return the command line that runs ``argv`` confined.

        Args:
            argv: The command.
            workdir: The worktree, where the command runs; it may write there.
            writable: Other folders where it may write: home, temporary files, the exchange.
            kept: Files and folders of the user's checkout that are the user's own inside too,
                read-only, whatever the worktree has in their place.
            network: It may use the network, whatever the settings say of commands.

        Raises:
            SandboxError: The worktree is in a state in which it cannot be confined.
        """
        ...

    def inside(self, workdir: Path) -> Path:
        """Return where a worktree stands for the commands that run in it."""
        ...

    def explain(self, ended: ExecResult) -> str:
        """Return what the confinement had to do with the end of a command that failed.

        A program of the machine that it missed inside, or a limit that it has met, and how that is
        set. Empty for nothing.
        """
        ...

    def describe(self) -> str:
        """Return what keeps a command inside, in a few words for the report."""
        ...


class Service(Protocol):
    """A process that lives on beside the engine's threads and is spoken to in lines.

    It is gone with all its children when it is closed, when it ends, and when the harness does.
    """

    @property
    def returncode(self) -> int | None:
        """How it ended (``-N`` by signal N); ``None`` while it goes on."""
        ...

    def send(self, line: bytes) -> None:
        """Hand over a line, without its end. Never blocks; lost where the process has ended."""
        ...

    def receive(self) -> bytes | None:
        """Return the next line, without its end; ``None`` when there will be no more.

        Blocks; for one thread alone.
        """
        ...

    def tail(self) -> str:
        """Return the end of what it has said to its standard error."""
        ...

    def close(self) -> None:
        """End it; more than once is fine. Blocks for some seconds at most."""
        ...


class Exchange(Protocol):
    """``LOOP_OBSERVATION`` and ``LOOP_OUTBOX`` of one step, outside the worktree."""

    @property
    def env(self) -> Mapping[str, str]:
        """The variables that name both."""
        ...

    def offer(self, observation: str) -> None:
        """Write the observation for the next step and empty the outbox."""
        ...

    def messages(self) -> Iterator[Message]:
        """Yield what the worker has put in the outbox, in the order of the file names."""
        ...


class Repository(Protocol):
    """The user's repository, read by fetch, and the harness's own one beside it.

    The user's repository is written in one place only: :meth:`advance`.
    """

    def sync(self) -> None:
        """Fetch the user's branches and tags into the harness's own repository."""
        ...

    def head(self) -> Sha:
        """Return the commit of the user's HEAD as of the last :meth:`sync`."""
        ...

    def integration(self) -> Sha | None:
        """Return the commit of the integration branch in the user's repository now."""
        ...

    def tree_of(self, commit: str) -> str:
        """Return the tree id of a commit."""
        ...

    def open_sandbox(
        self, name: str, base: Sha, tree: str | None = None, *, rescue_ref: str = ""
    ) -> Sandbox:
        """Return a new worktree of ``base``, its files those of ``tree`` where one is given.

        A worktree of that name is removed first, unless it holds what no ref keeps yet. A worker's
        has a ``rescue_ref`` (below ``refs/loop/``), under which its files are saved when a step is
        cut short; a number is added where it is taken.

        Raises:
            SandboxError: It could not be made; says why.
        """
        ...

    def keep(self, ref: str, tree: str, base: Sha, message: str) -> Sha:
        """Commit ``tree`` on ``base`` and point ``ref`` (below ``refs/loop/``) at it."""
        ...

    def kept(self, prefix: str = "refs/loop/") -> Mapping[str, Sha]:
        """Return the refs that keep trees, with their commits."""
        ...

    def changes(self, old: str, new: str) -> tuple[Change, ...]:
        """Return what differs between two trees, by path; renames are two changes."""
        ...

    def changed_lines(self, old: str, new: str) -> int:
        """Return the number of added and removed lines; a binary file counts as one."""
        ...

    def read_blob(self, tree: str, path: str, limit: int = 1 << 20) -> bytes | None:
        """Return at most ``limit`` bytes of a file of a tree; ``None`` where there is none."""
        ...

    def files(self, tree: str) -> tuple[TreeFile, ...]:
        """Return the regular files of a tree by path; no links, nothing of submodules."""
        ...

    def read_blobs(self, blobs: Sequence[str]) -> Mapping[str, bytes]:
        """Return the whole contents of several blobs in one go; one that is missing is left out.

        All are in memory at once: the caller sees to their sizes.
        """
        ...

    def carry(self, base: str, tree: str, onto: str) -> Carried:
        """Return the diff from ``base`` to ``tree`` applied to the tree of ``onto``."""
        ...

    def overlaid(self, tree: str, changes: Sequence[Change]) -> str:
        """Return a tree that has the files of ``tree``, and over them the new side of changes."""
        ...

    def commit(self, tree: str, parent: Sha, message: str) -> Sha:
        """Return a new commit in the harness's own repository."""
        ...

    def advance(self, new: Sha, old: Sha | None) -> None:
        """Move the integration branch of the user's repository from ``old`` to ``new``.

        Raises:
            LandingRefusedError: It is not at ``old`` any more, is checked out somewhere, or the
                move is no fast-forward. Nothing was changed.
        """
        ...

    def landings(self, base: Sha | None = None) -> tuple[Landed, ...]:
        """Return the commits with our trailers on the integration branch, newest first."""
        ...


class Gate(Protocol):
    """The judges that block, in order."""

    def judge(self, candidate: Candidate) -> GateResult:
        """Return the evidence; makes and removes the checkouts that it needs.

        Raises:
            CancelledError: The run was asked to stop.
        """
        ...

    def run_check(self, command: str, commit: Sha) -> CheckResult:
        """Return how a done-criterion's command ends on a fresh checkout of ``commit``."""
        ...


class ManifestFile(Protocol):
    """``tasks/ACTIVE.toml``: read often, written back one status at a time."""

    @property
    def path(self) -> Path:
        """Where it is."""
        ...

    @property
    def refusal(self) -> str:
        """Why the last :meth:`write_status` returned False, one line; else empty."""
        ...

    def load(self) -> Manifest:
        """Return what the file holds now.

        Raises:
            ManifestError: All its faults.
        """
        ...

    def write_status(self, task: TaskId, status: TaskStatus) -> bool:
        """Write one status back, byte-exactly and atomically, into the file as it is now.

        Returns:
            False when the file cannot take it now (the user is editing it and it does not parse,
            or the task is gone); nothing was written then and the caller tries again later.
        """
        ...

    def preview(self, addition: Addition) -> Manifest:
        """Return the manifest as it would be with an addition; nothing is written.

        Raises:
            ManifestError: All its faults; those of the file itself where it has some.
        """
        ...

    def extend(self, addition: Addition) -> Manifest:
        """Write an addition, all of it or nothing, and return the manifest that is there now.

        What stood in the file stays byte for byte; a file that is missing is made.

        Raises:
            ManifestError: What keeps it from being written; nothing was.
        """
        ...


class Frontier(Protocol):
    """Which tasks can run, kept up incrementally."""

    def ready(self) -> tuple[Task, ...]:
        """Return the frontier: higher priority first, then file order."""
        ...

    def mark(self, task: TaskId, status: TaskStatus) -> None:
        """Tell that a task's status has changed."""
        ...

    def waits(self) -> tuple[Wait, ...]:
        """Return, for each task in scope that is not done, the one thing it waits for."""
        ...


class Pause(Protocol):
    """The user's request to issue no further step."""

    @property
    def is_heeded(self) -> bool:
        """:meth:`is_asked` has said so, and therefore something was not begun."""
        ...

    def is_asked(self) -> bool:
        """Return whether it was made; from then on always."""
        ...
