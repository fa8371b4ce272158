"""One step: gives a worker its request, and folds what it answers into one value."""

from collections.abc import Generator
from dataclasses import dataclass, field, replace

from loopctl.domain import Assumption, DecisionDraft, Usage
from loopctl.engine import questions
from loopctl.errors import EnvironmentFaultError
from loopctl.events import MessageRejected
from loopctl.plan import CallDone, StepProgress
from loopctl.ports import Emit, Sandbox, Worker
from loopctl.steps import (
    Assumed,
    BudgetRefused,
    Deferred,
    ForkRaised,
    InterruptRequired,
    MessageMalformed,
    OutputTail,
    PlanProposed,
    PremiseInvalid,
    Proposed,
    StepEvent,
    StepRequest,
    TodoDone,
    ToolCallFinished,
    ToolCallStarted,
    ToolEvent,
    TurnTaken,
    UsageReported,
    WorkerProgress,
)
from loopctl.suggestions import AssumptionRecorded, TaskProposed


@dataclass(frozen=True, slots=True)
class Step:
    """What a step came to.

    Attributes:
        said: The end of what the worker said; of a step that says nothing else, the step in words.
        exit: Of a command, where the step was one.
        is_environment: The machine kept the step from happening.
        is_cut: The machine has cut the step short; nothing of it counts, and it is taken again.
        closed: The summary with which the worker closes the active todo; ``None`` if it does not.
        drafts: What a human is asked; the step ends its task for now.
        forks: What the worker has met that can be done in several ways; not sorted yet.
        proposed: The todos that the worker sees ahead; ``None`` where it does not say.
        errors: What was wrong with the worker's messages; shown to it.
        done: The finished tool calls, those before an interrupt of the same step included.
        next_call: The ordinal after that of the last call.
        interrupt: A call waits for a person, so the step is not at its end.
        last_call: The newest call, for comparison with the next; empty where it is not compared.
        same_calls: How many calls in a row, the newest included, were the same.
        is_stuck: The worker made the same call again and again, and was stopped.
        refused: A model call did not fit the budget, and the step ended there.
        turn: The step in words, for the candidate's past; empty where the worker says none.
        paid: Replies whose cost is in ``usage``, or was counted before an interrupt.
    """

    progress: WorkerProgress
    said: str = ""
    exit: int | None = None
    is_environment: bool = False
    is_cut: bool = False
    closed: str | None = None
    drafts: tuple[DecisionDraft, ...] = ()
    forks: tuple[ForkRaised, ...] = ()
    proposed: tuple[str, ...] | None = None
    errors: tuple[str, ...] = ()
    usage: Usage = field(default_factory=Usage)
    done: tuple[CallDone, ...] = ()
    next_call: int = 0
    interrupt: InterruptRequired | None = None
    last_call: str = ""
    same_calls: int = 0
    is_stuck: bool = False
    refused: BudgetRefused | None = None
    turn: str = ""
    paid: int = 0

    @property
    def observation(self) -> str:
        """What the next step is shown of this one."""
        rejected = (f"A message of yours could not be read: {error}" for error in self.errors)
        return "\n".join((*rejected, self.said))

    @property
    def is_void(self) -> bool:
        """Its first model call did not fit the budget, so that nothing was done."""
        is_idle = not self.progress.made_tool_calls and self.closed is None
        return self.refused is not None and is_idle

    def signals(self, tree: str, *, changed: bool) -> StepProgress:
        """Return what the step says about progress, with the worktree's tree after it."""
        return StepProgress(
            made_tool_calls=self.progress.made_tool_calls,
            tool_calls_errored=self.progress.tool_calls_errored,
            produced_new_artifacts=changed,
            todo_completed=self.closed is not None,
            response_delta_hash=self.progress.response_delta_hash,
            tree=tree,
            tool_calls_hash=self.progress.tool_calls_hash,
        )


@dataclass(frozen=True, slots=True)
class Watch:
    """Who looks on while a worker works.

    Attributes:
        same_calls: After so many equal calls in a row within a step the worker is stopped.
    """

    candidate: str
    emit: Emit
    same_calls: int


def pursue(worker: Worker, request: StepRequest, sandbox: Sandbox, watch: Watch) -> Step:
    """Return what the step came to.

    Raises:
        SandboxError: The sandbox is gone; the step did not happen.
        CancelledError: The run was asked to stop.
    """
    step = Step(progress=WorkerProgress(False, False, ""))  # noqa: FBT003 - nothing seen yet
    if request.resume is not None:
        resume = request.resume
        step = replace(step, done=resume.done, closed=resume.closed, paid=resume.paid)
    try:
        events = worker.execute_step(request, sandbox)
        for event in events:
            step = _fold(step, event)
            _tell(event, request, watch)
            if step.same_calls >= watch.same_calls:
                if isinstance(events, Generator):
                    events.close()
                return replace(step, is_stuck=True)
    except EnvironmentFaultError as fault:
        # A call that waits for a person is all that there was to come.
        if step.interrupt is None:
            return replace(step, said=str(fault), is_environment=True, is_cut=True)
    return step


def _tell(event: StepEvent, request: StepRequest, watch: Watch) -> None:
    task, candidate = request.task.id, watch.candidate
    match event:
        case MessageMalformed(error):
            watch.emit(MessageRejected(task=task, candidate=candidate, error=error))
        case Assumed(Assumption(text, decision)):
            watch.emit(
                AssumptionRecorded(task=task, candidate=candidate, text=text, decision=decision)
            )
        case Proposed(proposal):
            watch.emit(
                TaskProposed(
                    task=task,
                    candidate=candidate,
                    title=proposal.title,
                    prompt=proposal.prompt,
                    verify_cmd=proposal.verify_cmd,
                    serves=proposal.serves,
                    deps=proposal.deps,
                )
            )
        case _:
            pass


def _fold(step: Step, event: StepEvent) -> Step:
    match event:
        case OutputTail(exit=code, text=text, is_environment=is_environment):
            return replace(step, said=text, exit=code, is_environment=is_environment)
        case TodoDone(summary):
            return replace(step, closed=summary)
        case Deferred() | ForkRaised() | PremiseInvalid():
            return _fold_question(step, event)
        case MessageMalformed(error):
            return replace(step, errors=(*step.errors, error))
        case ToolCallStarted() | ToolCallFinished() | InterruptRequired():
            return _fold_call(step, event)
        case PlanProposed(todos):
            return replace(step, proposed=todos)
        case UsageReported() | BudgetRefused() | TurnTaken():
            return _fold_account(step, event)
        case WorkerProgress():
            return replace(step, progress=event)
        case Assumed() | Proposed():
            return step


def _fold_question(step: Step, event: Deferred | ForkRaised | PremiseInvalid) -> Step:
    if isinstance(event, ForkRaised):
        return replace(step, forks=(*step.forks, event))
    return replace(step, drafts=(*step.drafts, questions.of_worker(event)))


def _fold_account(step: Step, event: UsageReported | BudgetRefused | TurnTaken) -> Step:
    match event:
        case UsageReported(usage, reply):
            paid = step.paid if reply is None else max(step.paid, reply + 1)
            return replace(step, usage=step.usage + usage, paid=paid)
        case BudgetRefused():
            return replace(step, refused=event)
        case TurnTaken(text):
            return replace(step, turn=text, said=step.said or text)


def _fold_call(step: Step, event: ToolEvent) -> Step:
    match event:
        case ToolCallStarted(call_id, tool, arguments_hash):
            call = f"{tool} {arguments_hash}" if arguments_hash else ""
            same = step.same_calls + 1 if call and call == step.last_call else bool(call)
            after = max(step.next_call, call_id + 1)
            return replace(step, next_call=after, last_call=call, same_calls=int(same))
        case ToolCallFinished(call_id, tool, content, is_error):
            return replace(step, done=(*step.done, CallDone(call_id, tool, content, is_error)))
        case InterruptRequired():
            return replace(step, interrupt=event)
