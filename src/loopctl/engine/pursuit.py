"""One step: gives a worker its request, and folds what it answers into one value."""

from dataclasses import dataclass, field, replace

from loopctl.domain import DecisionDraft, Usage
from loopctl.engine import questions
from loopctl.events import AssumptionRecorded, MessageRejected
from loopctl.ports import Emit, Sandbox, Worker
from loopctl.steps import (
    Assumed,
    Deferred,
    ForkRaised,
    MessageMalformed,
    OutputTail,
    PlanProposed,
    PremiseInvalid,
    StepEvent,
    StepRequest,
    TodoDone,
    UsageReported,
    WorkerProgress,
)


@dataclass(frozen=True, slots=True)
class Step:
    """What a step came to.

    Attributes:
        said: The end of what the worker said.
        exit: Of a command, where the step was one.
        is_environment: The machine kept the step from happening.
        closed: The summary with which the worker closes the active todo; ``None`` if it does not.
        drafts: What a human is asked; the step ends its task for now.
        proposed: The todos that the worker sees ahead; ``None`` where it does not say.
        errors: What was wrong with the worker's messages; shown to it.
    """

    progress: WorkerProgress
    said: str = ""
    exit: int | None = None
    is_environment: bool = False
    closed: str | None = None
    drafts: tuple[DecisionDraft, ...] = ()
    proposed: tuple[str, ...] | None = None
    errors: tuple[str, ...] = ()
    usage: Usage = field(default_factory=Usage)

    @property
    def observation(self) -> str:
        """What the next step is shown of this one."""
        rejected = (f"A message of yours could not be read: {error}" for error in self.errors)
        return "\n".join((*rejected, self.said))


def pursue(
    worker: Worker, request: StepRequest, sandbox: Sandbox, candidate: str, emit: Emit
) -> Step:
    """Return what the step came to.

    Raises:
        SandboxError: The sandbox is gone; the step did not happen.
        CancelledError: The run was asked to stop.
    """
    step = Step(progress=WorkerProgress(False, False, ""))  # noqa: FBT003 - nothing seen yet
    for event in worker.execute_step(request, sandbox):
        step = _fold(step, event)
        match event:
            case MessageMalformed(error):
                emit(MessageRejected(task=request.task.id, candidate=candidate, error=error))
            case Assumed(assumption):
                emit(
                    AssumptionRecorded(
                        task=request.task.id,
                        candidate=candidate,
                        text=assumption.text,
                        decision=assumption.decision,
                    )
                )
            case _:
                pass
    return step


def _fold(step: Step, event: StepEvent) -> Step:
    match event:
        case OutputTail(exit=code, text=text, is_environment=is_environment):
            return replace(step, said=text, exit=code, is_environment=is_environment)
        case TodoDone(summary):
            return replace(step, closed=summary)
        case Deferred() | ForkRaised() | PremiseInvalid():
            return replace(step, drafts=(*step.drafts, questions.of_worker(event)))
        case MessageMalformed(error):
            return replace(step, errors=(*step.errors, error))
        case PlanProposed(todos):
            return replace(step, proposed=todos)
        case UsageReported(usage):
            return replace(step, usage=step.usage + usage)
        case WorkerProgress():
            return replace(step, progress=event)
        case Assumed():
            return step
