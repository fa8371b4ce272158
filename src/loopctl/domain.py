"""The values that every part of ``loop`` speaks of: frozen, without input or output.

The words are those of ``docs/glossary.md``.
"""

from dataclasses import dataclass, field
from enum import StrEnum
from typing import Final, NewType

TaskId = NewType("TaskId", str)
"""A manifest id: letters, digits, ``.``, ``_``, ``-``; begins with a letter or digit."""

Sha = NewType("Sha", str)
"""A full hexadecimal git object id (40 or 64 digits)."""


GOAL: Final = "@goal"
"""Stands for a task in the goal's own decisions; no task can be called that."""


APPROVED: Final = "approve"
"""The one answer that lets a pending action happen."""

REJECTED: Final = "reject"
"""The answer that leaves a task as it is; a call that waits for approval is refused by it."""


TIMED_OUT: Final = "timeout"
"""Stands for the answer of somebody who was asked about a call and gave none in time."""


class TaskStatus(StrEnum):
    """What the manifest says of a task; only the harness moves it (``engine/transitions.py``)."""

    BACKLOG = "backlog"
    TODO = "todo"
    IN_PROGRESS = "in-progress"
    DONE = "done"
    BLOCKED = "blocked"
    NEEDS_HUMAN = "needs-human"
    STUCK = "stuck"
    ABANDONED = "abandoned"


class Kind(StrEnum):
    """What a task yields: code, gated by commands, or a prose file, gated by judges."""

    CODE = "code"
    RESEARCH = "research"
    PLAN = "plan"
    DESIGN = "design"
    DOC = "doc"


class Mode(StrEnum):
    """How deep a task is worked on: with a plan, or as one todo."""

    AUTONOMOUS = "autonomous"
    RELAY = "relay"


class Baseline(StrEnum):
    """Whether what is red at the base may stay red."""

    STRICT = "strict"
    NO_NEW_FAILURES = "no-new-failures"


@dataclass(frozen=True, slots=True)
class Option:
    """One way to do a task whose fork is known beforehand; becomes one candidate."""

    name: str
    prompt: str = ""
    command: str | None = None


@dataclass(frozen=True, slots=True)
class Limits:
    """Caps; ``None`` means that the next outer limit counts, 0 that nothing may be spent."""

    tokens: int | None = None
    usd: float | None = None
    loops: int | None = None
    wall_s: float | None = None


@dataclass(frozen=True, slots=True)
class Task:
    """One task of the manifest, with the manifest's ``[defaults]`` already folded in."""

    id: TaskId
    title: str
    status: TaskStatus = TaskStatus.TODO
    kind: Kind = Kind.CODE
    area: tuple[str, ...] = ()
    deps: tuple[TaskId, ...] = ()
    priority: int = 0
    model: str | None = None
    worker: str | None = None
    mode: Mode | None = None
    verify_cmd: str | None = None
    prompt: str = ""
    accept: tuple[str, ...] = ()
    may_edit: tuple[str, ...] = ()
    output: str | None = None
    command: str | None = None
    options: tuple[Option, ...] = ()
    baseline: Baseline | None = None
    budget: Limits = field(default_factory=Limits)
    approved: tuple[str, ...] = ()
    """Keys of the hits that a person lets land: set by answers, never by the manifest."""
    clarified: tuple[str, ...] = ()
    """What a person has said about its output, each with its question: set by answers."""

    @property
    def is_prose(self) -> bool:
        """Its result is a text that judges read."""
        return self.kind is not Kind.CODE


@dataclass(frozen=True, slots=True)
class Criterion:
    """One done-criterion: a command that must exit 0, or a sentence that is judged."""

    check: str | None = None
    criterion: str | None = None


@dataclass(frozen=True, slots=True)
class Goal:
    """The user's objective, verbatim, and when it is met."""

    text: str = ""
    done_when: tuple[Criterion, ...] = ()


@dataclass(frozen=True, slots=True)
class Manifest:
    """The goal and the tasks, in file order; ids are unique, ``deps`` known and acyclic."""

    goal: Goal
    tasks: tuple[Task, ...]


@dataclass(frozen=True, slots=True)
class Proposal:
    """A task that a worker proposes.

    Attributes:
        serves: The done-criterion of the goal that it serves, word for word or by its number.
        deps: Ids of tasks that must be done before.
    """

    title: str
    prompt: str
    verify_cmd: str
    serves: str
    deps: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Addition:
    """What is added to a manifest.

    Attributes:
        goal: Written where it has none, and in the place of the one that it has; ``None`` leaves
            it as it is.
        tasks: Appended, in this order. Only what a model may say of a task is written.
        notes: Comments for people, before the tasks.
    """

    goal: Goal | None = None
    tasks: tuple[Task, ...] = ()
    notes: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Usage:
    """What was spent on models. Addable."""

    prompt_tokens: int = 0
    completion_tokens: int = 0
    usd: float = 0.0

    def __add__(self, other: "Usage") -> "Usage":
        return Usage(
            self.prompt_tokens + other.prompt_tokens,
            self.completion_tokens + other.completion_tokens,
            self.usd + other.usd,
        )


@dataclass(frozen=True, slots=True)
class ExecResult:
    """How a process ended. A command that fails is a value, not an exception.

    Attributes:
        returncode: The exit code; ``-N`` when signal N ended it; 127 when the program is missing
            and 126 when it cannot be executed.
        stdout: At most the bound that was asked for: the head and the tail, with a line that says
            how many bytes are missing. Holds standard error too where the two were merged.
        stderr: Likewise.
        duration_ms: Wall time from start to the end of the last process of its group.
        timed_out: The time limit ended it.
        truncated: Some of the output was dropped.
        excess: In words, of what it took too much and was ended for it; empty for nothing.
    """

    returncode: int
    stdout: bytes = b""
    stderr: bytes = b""
    duration_ms: int = 0
    timed_out: bool = False
    truncated: bool = False
    excess: str = ""


class Axis(StrEnum):
    """Along which axis a task ended."""

    GOAL = "goal"
    STALL = "stall"
    BUDGET = "budget"
    DEFER = "defer"
    GATE = "gate"
    ERROR = "error"


@dataclass(frozen=True, slots=True)
class StopReason:
    """Why the work on a task stopped: the axis and one of its reasons."""

    axis: Axis
    reason: str


class DecisionKind(StrEnum):
    """What a decision is about."""

    EXTERNAL = "external"
    SCOPE = "scope"
    APPROVAL = "approval"
    BUDGET = "budget"
    KICKOFF = "kickoff"
    VERIFY = "verify"
    OUTCOME = "outcome"
    PREMISE = "premise"
    ENVIRONMENT = "environment"


@dataclass(frozen=True, slots=True)
class DecisionDraft:
    """A question for a human before it has an id."""

    kind: DecisionKind
    question: str
    best_guess: str = ""
    options: tuple[str, ...] = ()
    reason: str = ""
    call_key: str = ""
    """The tool call that it is about; empty where it is about none."""


@dataclass(frozen=True, slots=True)
class Decision:
    """A question for a human, and its answer once there is one.

    Attributes:
        id: ``TASK.N``, N counting the task's decisions from 1; ``@goal.N`` for the goal's own.
        run_id: The run that raised it and that an answer continues.
        answer: ``None`` while it is open.
        raised: The caps of the task that the answer raises.
        call_key: The tool call that it is about; empty where it is about none.
    """

    id: str
    task: str
    run_id: str
    kind: DecisionKind
    question: str
    best_guess: str = ""
    options: tuple[str, ...] = ()
    reason: str = ""
    answer: str | None = None
    answered_at: str | None = None
    raised: Limits = Limits()
    call_key: str = ""

    @property
    def is_going_on(self) -> bool:
        """It is answered, and the answer lets the task go on.

        A rejection does not, but for one that refuses a call: the task goes on without it.
        """
        refuses_call = self.kind is DecisionKind.APPROVAL and bool(self.call_key)
        return self.answer is not None and (self.answer != REJECTED or refuses_call)


def asks_consent(asked: Decision | DecisionDraft) -> bool:
    """Return whether ``approve`` or ``reject`` is the whole answer."""
    return asked.kind is DecisionKind.APPROVAL or asked.options == (APPROVED, REJECTED)


@dataclass(frozen=True, slots=True)
class Assumption:
    """What a worker took for granted; an answer that contradicts it marks the task again."""

    text: str
    decision: str = ""


class RunStatus(StrEnum):
    """How a run stands. ``running`` until it has ended; the rest as in the exit table."""

    RUNNING = "running"
    COMPLETE = "complete"
    NEEDS_HUMAN = "needs_human"
    STALLED = "stalled"
    BUDGET_EXHAUSTED = "budget_exhausted"
    FAILED = "failed"
    INTERRUPTED = "interrupted"


EXIT_CODES: dict[RunStatus, int] = {
    RunStatus.COMPLETE: 0,
    RunStatus.FAILED: 1,
    RunStatus.NEEDS_HUMAN: 3,
    RunStatus.STALLED: 4,
    RunStatus.BUDGET_EXHAUSTED: 5,
    RunStatus.INTERRUPTED: 130,
}


@dataclass(frozen=True, slots=True)
class Scope:
    """Which tasks a run is about. All empty means the whole manifest.

    Attributes:
        ids: Named tasks; they run whatever their status, but for ``done``.
        areas: Tags, any of which a task must carry.
        with_deps: Unmet dependencies of the named tasks are run as well.
    """

    ids: tuple[TaskId, ...] = ()
    areas: tuple[str, ...] = ()
    with_deps: bool = False

    @property
    def is_whole(self) -> bool:
        """The whole manifest is meant."""
        return not self.ids and not self.areas


@dataclass(frozen=True, slots=True)
class Wait:
    """The one thing that a task which did not run waits for."""

    task: TaskId
    reason: str


@dataclass(frozen=True, slots=True)
class RunOptions:
    """What a command line asks of a run, beyond the settings.

    Attributes:
        verify_cmd: Replaces the verify command of every task in scope.
        attended: Somebody is at the terminal.
        wip: Uncommitted changes of the checkout are taken along as a snapshot below the run.
        land: The current branch is fast-forwarded at the end.
    """

    scope: Scope = Scope()
    verify_cmd: str | None = None
    attended: bool = False
    wip: bool = False
    land: bool = False


class PolicyClass(StrEnum):
    """How far a task's effects can be undone; computed before the run."""

    REVERSIBLE = "reversible"
    NEEDS_APPROVAL = "needs-approval"
    IRREVERSIBLE = "irreversible"


@dataclass(frozen=True, slots=True)
class PolicyFinding:
    """The policy class of a task.

    Attributes:
        reason: What tells so; empty for a reversible task.
        is_refused: Neither an approval nor anything else makes ``loop`` do it.
    """

    policy: PolicyClass = PolicyClass.REVERSIBLE
    reason: str = ""
    is_refused: bool = False


@dataclass(frozen=True, slots=True)
class Prospect:
    """One task that a run would work on, as ``--dry-run`` shows it, in the order of work.

    Attributes:
        waits: Empty for a task of the frontier; else the ids, among those before it in the
            list, that have to be done first.
    """

    task: Task
    worker: str
    policy: PolicyClass
    waits: tuple[TaskId, ...] = ()
