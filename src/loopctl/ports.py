"""Every protocol of the house: read this file first.

The engine knows these and nothing behind them; concrete classes meet in ``bootstrap.py`` alone.
Results are values; broken machinery is an exception of ``errors.py``.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Protocol

from loopctl.domain import (
    Change,
    Decision,
    DecisionDraft,
    ExecResult,
    Limits,
    Manifest,
    RunStatus,
    Sha,
    Task,
    TaskId,
    TaskStatus,
    Wait,
)
from loopctl.plan import Checkpoint
from loopctl.records import (
    Candidate,
    Capsule,
    Carried,
    Landed,
    Rescued,
    RunRecord,
    SessionRecord,
)
from loopctl.steps import Message, StepEvent, StepRequest
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

    def wrap(self, argv: Sequence[str], *, workdir: Path, writable: Sequence[Path]) -> list[str]:
        """Return the command line that runs ``argv`` confined.

        Args:
            argv: The command.
            workdir: The worktree, where the command runs; it may write there.
            writable: Other folders where it may write: home, temporary files, the exchange.
        """
        ...

    def describe(self) -> str:
        """Return what keeps a command inside, in a few words for the report."""
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

        A worktree of that name is removed first, unless it holds what no ref keeps yet.

        Args:
            name: Unique in the repository.
            base: A commit.
            tree: Instead of that of ``base``.
            rescue_ref: Where the sandbox is a worker's: the ref (below ``refs/loop/``) under which
                its files are saved when a step is cut short. A number is added where it is taken.

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

    def carry(self, base: str, tree: str, onto: str) -> Carried:
        """Return the diff from ``base`` to ``tree`` applied to the tree of ``onto``."""
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


class VerdictCache(Protocol):
    """Remembers verdicts on trees, so that a base is judged once."""

    def get(self, tree: str, check: str, command: str) -> CheckResult | None:
        """Return what was found before."""
        ...

    def put(self, tree: str, check: str, command: str, result: CheckResult) -> None:
        """Remember a verdict; one whose blame is ``environment`` or ``flaky`` is not kept."""
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


class RunStore(Protocol):
    """Runs, in ``.local/loop.db``. Every write here and below is one transaction."""

    def create_run(self, record: RunRecord) -> None:
        """Remember a new run."""
        ...

    def set_run_status(self, run_id: str, status: RunStatus, ended: str | None) -> None:
        """Remember how a run stands."""
        ...

    def run(self, run_id: str) -> RunRecord | None:
        """Return one run."""
        ...

    def runs(self) -> tuple[RunRecord, ...]:
        """Return all runs, the newest first."""
        ...


class SessionStore(Protocol):
    """Sessions and their checkpoints."""

    def open_session(self, run_id: str, task: TaskId, candidate: str, base: Sha) -> SessionRecord:
        """Return the session of that candidate, made now or earlier, with its last checkpoint."""
        ...

    def last_run(self, task: TaskId) -> str | None:
        """Return the run that was the last to open a session of a task."""
        ...

    def save_checkpoint(self, session_id: str, iteration: int, checkpoint: Checkpoint) -> None:
        """Save one iteration; the same again is a no-op.

        Raises:
            CheckpointConflictError: The iteration exists with other contents.
        """
        ...


class DecisionStore(Protocol):
    """What humans were asked, and what they said."""

    def raise_decision(self, run_id: str, task: str, draft: DecisionDraft) -> Decision:
        """Return the new decision, numbered within its task; the open one if it is the same."""
        ...

    def answer_decision(
        self, decision_id: str, answer: str, answered_at: str, raised: Limits
    ) -> Decision:
        """Return the decision with its answer and the caps that it raises.

        Raises:
            AnswerError: There is no such decision, or it was answered before (and how).
        """
        ...

    def decisions(self, *, task: str | None = None) -> tuple[Decision, ...]:
        """Return the decisions of all runs in the order in which they were raised."""
        ...


class Pause(Protocol):
    """The user's request to issue no further step."""

    @property
    def is_heeded(self) -> bool:
        """:meth:`is_asked` has said so, and therefore something was not begun."""

    def is_asked(self) -> bool:
        """Return whether it was made; from then on always."""


class Brain(Protocol):
    """The context port: rebuilds the thread from what is on disk."""

    def boot(self) -> Capsule:
        """Return the capsule as it is on disk; opens every iteration."""
        ...

    def carry(self, capsule: Capsule) -> None:
        """Write the capsule, atomically; follows each gate pass and each deferral."""
        ...

    def update(self, change: Callable[[Capsule], Capsule]) -> None:
        """Carry what ``change`` makes of the booted capsule; one change at a time."""
        ...
