"""Every event of a run as a frozen value, and their union.

An event is appended to ``events.jsonl`` before anything that depends on it is done; the live
view, the reports and ``run.json`` are made from events alone. Names are in the past tense.
Readers accept old events for ever: a changed shape is a new ``type``.
"""

from functools import cache
from typing import Annotated, Any, Literal

from pydantic import Field, TypeAdapter

from loopctl.domain import Axis, DecisionKind, RunStatus, Scope, TaskStatus, Usage, Wait
from loopctl.eventbase import Event
from loopctl.forkevents import ForkClassified
from loopctl.plan import StepProgress
from loopctl.suggestions import AssumptionRecorded, ProposalJudged, TaskProposed, TodoAdded
from loopctl.verdict import CheckResult, Verdict


class RunStarted(Event):
    """A run was begun.

    Attributes:
        base: The commit that the first sandbox is made from.
        tasks: The ids in scope, in the order of the manifest, with their titles.
        statuses: How those tasks stood before the first was begun.
    """

    type: Literal["run_started"] = "run_started"
    goal: str
    base: str
    branch: str
    scope: Scope
    tasks: tuple[tuple[str, str], ...]
    settings_hash: str = ""
    statuses: tuple[tuple[str, TaskStatus], ...] = ()


class RunResumed(Event):
    """A run is driven on: after an answer, an interruption or a crash."""

    type: Literal["run_resumed"] = "run_resumed"
    reason: Literal["answer", "resume", "crash"]
    tasks: tuple[tuple[str, str], ...]
    statuses: tuple[tuple[str, TaskStatus], ...] = ()


class Noticed(Event):
    """Something that the user should know and that changes no status."""

    type: Literal["noticed"] = "noticed"
    text: str
    level: Literal["info", "warning"] = "warning"


class TaskClaimed(Event):
    """Work on a task was begun, or taken up again."""

    type: Literal["task_claimed"] = "task_claimed"
    title: str
    worker: str
    model: str | None = None
    resumed: bool = False


class StatusChanged(Event):
    """A task's status was moved by a signal (``engine/transitions.py``)."""

    type: Literal["status_changed"] = "status_changed"
    old: TaskStatus
    new: TaskStatus
    signal: str


class SandboxOpened(Event):
    """A candidate's worktree stands."""

    type: Literal["sandbox_opened"] = "sandbox_opened"
    candidate: str
    base: str
    tree: str


class StepStarted(Event):
    """A worker was given one sub-goal."""

    type: Literal["step_started"] = "step_started"
    candidate: str
    iteration: int
    step_goal: str


class StepFinished(Event):
    """The worker has answered; its tree is kept.

    Attributes:
        exit: Of a command, where the step was one.
        tail: The end of what it said.
        overhead_ms: What the harness itself took: saving the checkpoint of the step before this
            one, booting the context, keeping the tree.
        phases: Each phase of the step, in order, with when it began: milliseconds after the
            step's start. The event itself stands at the start of the last one.
    """

    type: Literal["step_finished"] = "step_finished"
    candidate: str
    iteration: int
    tree: str
    ms: int
    progress: StepProgress
    exit: int | None = None
    tail: str = ""
    usage: Usage = Usage()
    overhead_ms: float = 0.0
    phases: tuple[tuple[str, float], ...] = ()


class PlanCreated(Event):
    """A plan stands."""

    type: Literal["plan_created"] = "plan_created"
    candidate: str
    todos: tuple[str, ...]


class PlanRevised(Event):
    """A re-plan was accepted."""

    type: Literal["plan_revised"] = "plan_revised"
    candidate: str
    todos: tuple[str, ...]
    replans: int


class TodoClosed(Event):
    """A todo was closed by the worker's signal."""

    type: Literal["todo_closed"] = "todo_closed"
    candidate: str
    todo: str
    summary: str = ""


class TodoReopened(Event):
    """The gate failed, so the last todo is open again."""

    type: Literal["todo_reopened"] = "todo_reopened"
    candidate: str
    todo: str


class MessageRejected(Event):
    """A message in the outbox could not be read; the worker is shown why."""

    type: Literal["message_rejected"] = "message_rejected"
    candidate: str
    error: str


class CallFinished(Event):
    """A tool call that leaves the sandbox was made, and its result is in the ledger.

    Attributes:
        key: By which the ledger and the tool know it.
        is_error: The tool has failed.
    """

    type: Literal["call_finished"] = "call_finished"
    candidate: str
    iteration: int
    ordinal: int
    tool: str
    key: str
    is_error: bool = False
    ms: int = 0


class CallReplayed(Event):
    """A tool call that was made before was answered without making it again.

    Attributes:
        key: By which the ledger and the tool know it.
        source: Where its result was found.
    """

    type: Literal["call_replayed"] = "call_replayed"
    candidate: str
    iteration: int
    ordinal: int
    tool: str
    key: str
    source: Literal["ledger", "probe"]


class ContextCompacted(Event):
    """Steps ``first`` to ``last`` of a session's past, or summaries of them, became a summary.

    A step had to wait for it ``in_line``; a fallback is made by rule, since no model has answered.
    ``threshold_events`` is the number of turns at which one is begun ahead; 0: never.
    """

    type: Literal["context_compacted"] = "context_compacted"
    session: str
    first: int
    last: int
    in_line: bool
    is_fallback: bool
    is_merge: bool = False
    threshold_events: int = 0


class GateFinished(Event):
    """The gate has judged a candidate's tree."""

    type: Literal["gate_finished"] = "gate_finished"
    candidate: str
    head: str
    tree: str
    checks: tuple[CheckResult, ...]


class CandidateEnded(Event):
    """One of several competing candidates has come to its end.

    Attributes:
        name: The option's; of a fork met inside a task ``CANDIDATE.STEP.N-OPTION``.
        ref: Under which its tree is kept in the harness's own repository.
        changed_lines: Size of its diff; the smaller passing one wins.
    """

    type: Literal["candidate_ended"] = "candidate_ended"
    name: str
    verdict: Verdict
    ref: str
    reason: str = ""
    changed_lines: int | None = None


class ForkResolved(Event):
    """The gate has picked among competing candidates; ``None`` when none passed.

    Attributes:
        question: Of a fork that was met inside a task; empty for the task's own options.
    """

    type: Literal["fork_resolved"] = "fork_resolved"
    winner: str | None
    reason: str
    question: str = ""


class TaskLanded(Event):
    """A gated diff is on the integration branch.

    Attributes:
        commit: The commit made for it.
        key: The trailer ``Loop-Key``; the same for every attempt to land the same result.
    """

    type: Literal["task_landed"] = "task_landed"
    commit: str
    tree: str
    branch: str
    key: str
    files: int
    result: str = ""


class DecisionRaised(Event):
    """A human has to decide something; the run goes on with the other tasks."""

    type: Literal["decision_raised"] = "decision_raised"
    id: str
    kind: DecisionKind
    question: str
    best_guess: str = ""
    options: tuple[str, ...] = ()
    reason: str = ""


class DecisionAnswered(Event):
    """A human has decided."""

    type: Literal["decision_answered"] = "decision_answered"
    id: str
    answer: str


class TaskStopped(Event):
    """The work on a task ended, landed or not.

    Attributes:
        result: The final answer, or the best partial one.
        ref: Under which the candidate's tree is kept; empty where there is none.
    """

    type: Literal["task_stopped"] = "task_stopped"
    axis: Axis
    reason: str
    steps: int
    replans: int = 0
    result: str = ""
    ref: str = ""
    usage: Usage = Usage()


class MoneySpent(Event):
    """What a task has spent on models so far in the run; the run itself, where no task is named.

    Attributes:
        usage: All of it: steps, summaries, judgments; and what was put aside for a call of which
            nobody knows what it has cost, as prompt tokens.
    """

    type: Literal["money_spent"] = "money_spent"
    usage: Usage


class GoalJudged(Event):
    """The goal's done-criteria were looked at on the integration head."""

    type: Literal["goal_judged"] = "goal_judged"
    met: bool | None
    criteria: tuple[tuple[str, Verdict, str], ...]


class RunEnded(Event):
    """The run has come to its end, for now or for good.

    Attributes:
        head: The newest commit of the integration branch; the base where nothing landed.
        waits: For each task left, the one thing it waits for.
    """

    type: Literal["run_ended"] = "run_ended"
    status: RunStatus
    exit_code: int
    head: str
    waits: tuple[Wait, ...] = ()
    landed_here: str | None = None


AnyEvent = Annotated[
    RunStarted
    | RunResumed
    | Noticed
    | TaskClaimed
    | StatusChanged
    | SandboxOpened
    | StepStarted
    | StepFinished
    | PlanCreated
    | PlanRevised
    | TodoClosed
    | TodoReopened
    | TodoAdded
    | MessageRejected
    | AssumptionRecorded
    | TaskProposed
    | ProposalJudged
    | CallFinished
    | CallReplayed
    | ContextCompacted
    | GateFinished
    | ForkClassified
    | CandidateEnded
    | ForkResolved
    | TaskLanded
    | DecisionRaised
    | DecisionAnswered
    | TaskStopped
    | MoneySpent
    | GoalJudged
    | RunEnded,
    Field(discriminator="type"),
]
"""One event of a run. Renderers match on it and end in ``assert_never``."""


@cache
def _adapter() -> TypeAdapter[AnyEvent]:
    return TypeAdapter(AnyEvent)


def parse(line: str | bytes) -> AnyEvent:
    """Return the event that one line of ``events.jsonl`` holds.

    Raises:
        ValueError: The line is no event that this version knows.
    """
    return _adapter().validate_json(line)


def dump(event: Event) -> dict[str, Any]:
    """Return the event as the JSON object of its line."""
    return event.model_dump(mode="json")
