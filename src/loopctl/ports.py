"""Every protocol of the house: read this file first.

The engine knows these and nothing behind them; concrete classes meet in ``bootstrap.py`` alone.
Results are values; broken machinery is an exception of ``errors.py``.
"""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Protocol

from loopctl.domain import (
    Assumption,
    Change,
    CheckResult,
    Decision,
    DecisionDraft,
    ExecResult,
    GateResult,
    Goal,
    Limits,
    Manifest,
    Option,
    RunStatus,
    Scope,
    Sha,
    Task,
    TaskId,
    TaskStatus,
    Usage,
    Wait,
)
from loopctl.events import AnyEvent
from loopctl.plan import Budget, Checkpoint

Emit = Callable[[AnyEvent], AnyEvent]
"""Append an event; returns it as written, numbered and stamped, once it is written."""


Describe = Callable[[GateResult], str]
"""The text that a failing gate's evidence becomes for the worker."""


# --- workers -----------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class StepRequest:
    """All that a worker gets for one step; it keeps nothing of it afterwards.

    Attributes:
        session_id: One candidate of one task in one run.
        loop_iteration: From 1; goes on over resumes and answers.
        step_goal: The active todo's text; empty in relay mode.
        goal: The run's goal, verbatim.
        option: The way to do it, where this candidate is one of several.
        context: What the brain recalled, text.
        observation: Evidence of the last gate or of the last command; empty on the first step.
        answer: The human's words where the task was deferred before; ``None`` otherwise.
        budget: What is left to spend.
        run_id: The run.
    """

    session_id: str
    loop_iteration: int
    step_goal: str
    goal: Goal
    task: Task
    run_id: str
    option: Option | None = None
    context: str = ""
    observation: str = ""
    answer: str | None = None
    budget: Budget = field(default_factory=Budget)


@dataclass(frozen=True, slots=True)
class OutputTail:
    """What a command said, for the reader of the report and for the next observation."""

    exit: int
    text: str
    is_environment: bool = False
    """The command never had its chance: not found, out of time, killed, disk full."""


@dataclass(frozen=True, slots=True)
class TodoDone:
    """The worker says that the active todo is done; the gate has the last word."""

    summary: str = ""


@dataclass(frozen=True, slots=True)
class Deferred:
    """The worker asks a human."""

    draft: DecisionDraft


@dataclass(frozen=True, slots=True)
class ForkRaised:
    """The worker has met a decision with options; ``bucket`` is its own, unchecked, word."""

    question: str
    bucket: str
    options: tuple[Option, ...]
    best_guess: str = ""


@dataclass(frozen=True, slots=True)
class PremiseInvalid:
    """The worker has found that the task rests on something false."""

    claim: str
    evidence: str


@dataclass(frozen=True, slots=True)
class Assumed:
    """The worker took something for granted."""

    assumption: Assumption


@dataclass(frozen=True, slots=True)
class MessageMalformed:
    """A message could not be read; ``error`` is shown to the worker."""

    error: str


@dataclass(frozen=True, slots=True)
class UsageReported:
    """What a model call cost."""

    usage: Usage


@dataclass(frozen=True, slots=True)
class WorkerProgress:
    """Exactly one, last: the signals that only the worker can give.

    The engine adds what it can see for itself (new tree, todo closed) and makes a
    :class:`~loopctl.plan.StepProgress` of both.
    """

    made_tool_calls: bool
    tool_calls_errored: bool
    response_delta_hash: str
    tool_calls_hash: str = ""


StepEvent = (
    OutputTail
    | TodoDone
    | Deferred
    | ForkRaised
    | PremiseInvalid
    | Assumed
    | MessageMalformed
    | UsageReported
    | WorkerProgress
)


class Worker(Protocol):
    """Does one step and forgets; any step may run in a fresh process, or on another machine."""

    def execute_step(self, request: StepRequest, sandbox: "Sandbox") -> Iterator[StepEvent]:
        """Yield what happened; exactly one ``WorkerProgress`` comes last.

        Raises:
            SandboxError: The sandbox is gone; the step did not happen.
            CancelledError: The run was asked to stop; its processes have been ended.
        """
        ...


# --- sandbox -----------------------------------------------------------------------------------


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

    def messages(
        self,
    ) -> Iterator[TodoDone | Deferred | ForkRaised | PremiseInvalid | Assumed | MessageMalformed]:
        """Yield what the worker has put in the outbox, in the order of the file names."""
        ...


@dataclass(frozen=True, slots=True)
class Carried:
    """A diff on another head.

    Attributes:
        tree: The resulting tree; ``None`` when it does not apply cleanly.
        detail: git's own words where it does not.
    """

    tree: str | None
    detail: str = ""


@dataclass(frozen=True, slots=True)
class Landed:
    """A commit of the integration branch that this harness made, read from its trailers."""

    commit: Sha
    task: TaskId
    run_id: str
    key: str


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

    def open_sandbox(self, name: str, base: Sha, tree: str | None = None) -> Sandbox:
        """Return a new worktree of ``base``, its files those of ``tree`` where one is given.

        A worktree of that name left by a crash is removed first.

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


# --- judges ------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Candidate:
    """What a gate judges: the diff from ``base`` to ``tree``, to be applied to ``head``.

    Attributes:
        name: The option's name, or ``"main"``.
    """

    task: Task
    name: str
    base: Sha
    tree: str
    head: Sha


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


# --- manifest ----------------------------------------------------------------------------------


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


# --- store -------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class RunRecord:
    """A run as the store knows it.

    Attributes:
        settings_json: The settings frozen at its start.
        verify_cmd: Replaces the verify command of every task, where one was given.
        is_wip: ``base`` is a snapshot of the checkout's uncommitted changes.
    """

    id: str
    status: RunStatus
    goal: str
    base: Sha
    branch: str
    started: str
    scope: Scope
    settings_json: str
    settings_hash: str
    verify_cmd: str | None = None
    is_wip: bool = False
    ended: str | None = None


@dataclass(frozen=True, slots=True)
class SessionRecord:
    """One candidate of one task in one run."""

    id: str
    run_id: str
    task: TaskId
    candidate: str
    base: Sha
    iteration: int
    checkpoint: Checkpoint | None


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


class EventLog(Protocol):
    """``events.jsonl`` of a run and whoever listens to it."""

    def append(self, event: AnyEvent) -> AnyEvent:
        """Return the event as written, numbered and stamped; listeners are called after that."""
        ...

    def read(self) -> Iterable[AnyEvent]:
        """Return all events of the run so far, also those of earlier invocations."""
        ...


# --- context -----------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class DeferredTask:
    """A deferred task as it stands in the capsule."""

    task_id: str
    question: str
    best_guess: str = ""
    answer: str | None = None


@dataclass(frozen=True, slots=True)
class Capsule:
    """The durable thread of a run: what is re-read after any crash, clear or answer.

    Attributes:
        goal: Verbatim; byte-identical wherever it is copied.
        current_step: The exact next action, written before it is begun.
        verify_cmd: How to confirm the next step before it begins.
    """

    goal: str
    current_step: str = ""
    key_decisions: tuple[str, ...] = ()
    verify_cmd: str = ""
    deferred_tasks: tuple[DeferredTask, ...] = ()
    open_questions: tuple[str, ...] = ()
    assumptions: tuple[str, ...] = ()


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
