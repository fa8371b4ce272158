"""One step of a worker: what it is asked, and what it can answer.

A worker gets a :class:`StepRequest` and yields ``StepEvent`` values; what they mean for the task
is the engine's to decide.
"""

from dataclasses import dataclass, field

from loopctl.domain import Assumption, DecisionDraft, Goal, Option, Task, Usage
from loopctl.plan import Budget


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
        is_planning: The step makes the plan: it answers with :class:`PlanProposed`. It belongs to
            the iteration that it opens and is no loop of its own.
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
    is_planning: bool = False


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
class PlanProposed:
    """The todos that the worker sees ahead, in order: the plan, or what it should become.

    What is open and not named is abandoned; what is new is inserted.
    """

    todos: tuple[str, ...]


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


Message = TodoDone | Deferred | ForkRaised | PremiseInvalid | Assumed | MessageMalformed
"""What a worker may say through the outbox."""

StepEvent = OutputTail | Message | PlanProposed | UsageReported | WorkerProgress
