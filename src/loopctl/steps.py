"""One step of a worker: what it is asked, and what it can answer.

A worker gets a :class:`StepRequest` and yields ``StepEvent`` values; what they mean for the task
is the engine's to decide.
"""

from dataclasses import dataclass, field
from typing import Final

from loopctl.calls import OutcomeUnknown, Waiting
from loopctl.contextports import Memory
from loopctl.domain import (
    Assumption,
    DecisionDraft,
    DecisionKind,
    Goal,
    Option,
    Proposal,
    Task,
    Usage,
)
from loopctl.forking import Settled
from loopctl.moneyports import Cap
from loopctl.past import Past
from loopctl.plan import Budget, CallDone

REPLIES_MAX: Final = 1000
"""Replies of a model that one step may have; the next step of its iteration counts from there."""


@dataclass(frozen=True, slots=True)
class Resume:
    """How a step goes on that was interrupted in its middle.

    Attributes:
        blob: What the worker gave when it was interrupted. Empty: it takes the whole step again,
            on the files as they were before it, and the ledger answers for the calls it has made.
        done: The calls that were finished before; they must not be made again.
        call_id: Ordinal of the call that waited; with a blob it is the next to be made.
        is_allowed: A person lets it happen; otherwise it returns its error, fail-closed.
        answer: The person's words.
        approval: The token that goes with the call, once; ``None`` where it needs none.
        closed: The summary with which the step has closed the active todo, if it has.
        paid: Replies of the step whose cost the budget has in it already.
    """

    blob: bytes
    done: tuple[CallDone, ...]
    call_id: int
    is_allowed: bool
    answer: str
    approval: str | None = None
    closed: str | None = None
    paid: int = 0


@dataclass(frozen=True, slots=True)
class StepRequest:
    """All that a worker gets for one step; it keeps nothing of it afterwards.

    Attributes:
        session_id: One candidate of one task in one run.
        loop_iteration: From 1; goes on over resumes and answers.
        step_goal: The active todo's text; empty in relay mode.
        goal: The run's goal, verbatim.
        option: The way to do it, where this candidate is one of several.
        candidate: The option's name, or ``main``.
        tier: Which model: ``cheap``, ``standard`` or ``premium``.
        past: What the candidate has been through.
        todos: The plan as it stands, one line a todo, for the worker to see.
        known: What was recalled for the task when the candidate began; the same in all its steps.
        recalled: What was recalled for the active todo beside that.
        replies: What the model has answered in this iteration before it was cut short, from
            number ``first_reply`` on; given again, in order, before the model is asked.
        observation: Evidence of the last gate or of the last command; empty on the first step.
        answer: The human's words where the task was deferred before; ``None`` otherwise.
        settled: The forks of the plan that were settled without a trial.
        budget: What is left to spend.
        run_id: The run.
        is_planning: The step makes the plan: it answers with :class:`PlanProposed`. It belongs to
            the iteration that it opens and is no loop of its own.
        resume: Set where this iteration was begun before and interrupted; it goes on from there.
        first_call: The ordinal of the step's first tool call: they run over the whole iteration,
            and a planning step may have made some.
        first_reply: The number under which the step's first reply is kept, that of
            ``replies[0]``; the next one is kept under the next number. A step has at most
            ``REPLIES_MAX`` of them.
    """

    session_id: str
    loop_iteration: int
    step_goal: str
    goal: Goal
    task: Task
    run_id: str
    option: Option | None = None
    candidate: str = "main"
    tier: str = "standard"
    past: Past = field(default_factory=Past)
    todos: tuple[str, ...] = ()
    known: tuple[Memory, ...] = ()
    recalled: tuple[Memory, ...] = ()
    replies: tuple[str, ...] = ()
    observation: str = ""
    answer: str | None = None
    settled: tuple[Settled, ...] = ()
    budget: Budget = field(default_factory=Budget)
    is_planning: bool = False
    resume: Resume | None = None
    first_call: int = 0
    first_reply: int = 0


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
    """The worker has met a decision with options; ``bucket`` is its own, unchecked, word.

    Its texts may have any length.
    """

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
class Proposed:
    """The worker proposes a task; whether it comes into the manifest is the engine's to decide."""

    proposal: Proposal


@dataclass(frozen=True, slots=True)
class MessageMalformed:
    """A message could not be read; ``error`` is shown to the worker."""

    error: str


@dataclass(frozen=True, slots=True)
class PlanProposed:
    """The todos that the worker sees ahead, in order: the plan, or what it should become.

    What is open and not named is abandoned; what is new is inserted.
    """

    todos: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class UsageReported:
    """What a model call cost; told once more where its kept reply is given again.

    Attributes:
        reply: Which reply of the step it gave, from 0; ``None`` where it gave none.
    """

    usage: Usage
    reply: int | None = field(default=None, compare=False)


@dataclass(frozen=True, slots=True)
class BudgetRefused:
    """A model call was not made: its worst case does not fit. The step is at its end.

    Attributes:
        cap: Which one; ``None`` where the model's price is unknown under a cap in dollars.
        reason: What, which and what to do; one line.
        needed: The smallest such cap under which the call would fit, in tokens or US dollars; 0
            where nobody knows.
    """

    cap: Cap | None
    reason: str
    needed: float = 0.0


@dataclass(frozen=True, slots=True)
class TurnTaken:
    """The step in words, for the candidate's past; at most ``past.TURN_BYTES``."""

    text: str


@dataclass(frozen=True, slots=True)
class ToolCallStarted:
    """The worker makes a call; ``tool_call_id`` is its ordinal in the iteration.

    Equal calls have equal ``arguments_hash``; an empty one is not compared.
    """

    tool_call_id: int
    tool_name: str
    arguments_hash: str = ""


@dataclass(frozen=True, slots=True)
class ToolCallFinished:
    """A call has its result; kept, in case that the step is interrupted later on."""

    tool_call_id: int
    tool_name: str
    content: str
    is_error: bool = False


@dataclass(frozen=True, slots=True)
class InterruptRequired:
    """A call needs a person before the step can go on; only the worker's progress comes after it.

    Attributes:
        tool_call_id: The call's ordinal in the iteration.
        idempotency_key: Its key in the ledger.
        pending_tool_intent: Its arguments as canonical JSON, for the person who decides.
        blob: From which the worker goes on at exactly this call. Empty: it cannot; then the
            whole step is taken again, and the ledger answers for the calls that it has made.
        kind: ``approval``, or ``outcome`` where the call may have happened before.
        reason: Why it needs a person, one line.
        since: When it was begun before; empty for an approval.
    """

    tool_call_id: int
    tool_name: str
    idempotency_key: str
    pending_tool_intent: str
    blob: bytes = b""
    kind: DecisionKind = DecisionKind.APPROVAL
    reason: str = ""
    since: str = ""


def interrupt_for(waiting: Waiting, blob: bytes = b"") -> InterruptRequired:
    """Return the event by which a worker passes on that a call waits for a person."""
    call = waiting.call
    if isinstance(waiting, OutcomeUnknown):
        kind, reason, since = DecisionKind.OUTCOME, "", waiting.since
    else:
        kind, reason, since = DecisionKind.APPROVAL, waiting.reason, ""
    return InterruptRequired(
        tool_call_id=call.ordinal,
        tool_name=call.tool,
        idempotency_key=call.key,
        pending_tool_intent=call.arguments_json,
        blob=blob,
        kind=kind,
        reason=reason,
        since=since,
    )


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


Message = TodoDone | Deferred | ForkRaised | PremiseInvalid | Assumed | Proposed | MessageMalformed
"""What a worker may say through the outbox."""

ToolEvent = ToolCallStarted | ToolCallFinished | InterruptRequired
"""What a worker that calls tools tells of them."""

StepEvent = (
    OutputTail
    | Message
    | PlanProposed
    | ToolEvent
    | UsageReported
    | BudgetRefused
    | TurnTaken
    | WorkerProgress
)
