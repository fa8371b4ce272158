"""Each event as one plain line, for a log or a pipe."""

from typing import assert_never

from loopctl.events import (
    AnyEvent,
    CallFinished,
    CallReplayed,
    CandidateEnded,
    ContextCompacted,
    DecisionAnswered,
    DecisionRaised,
    ForkResolved,
    GateFinished,
    GoalJudged,
    MessageRejected,
    MoneySpent,
    Noticed,
    PlanCreated,
    PlanRevised,
    RunEnded,
    RunResumed,
    RunStarted,
    SandboxOpened,
    StatusChanged,
    StepFinished,
    StepStarted,
    TaskClaimed,
    TaskLanded,
    TaskStopped,
    TodoClosed,
    TodoReopened,
)
from loopctl.forkevents import ForkClassified
from loopctl.report.escape import one_line
from loopctl.report.fold import gate_line
from loopctl.report.wording import counted, spending
from loopctl.suggestions import AssumptionRecorded, ProposalJudged, TaskProposed, TodoAdded

_LIMIT = 200
_TIME = slice(11, 19)


def event_line(event: AnyEvent) -> str:
    """Return ``HH:MM:SS TASK what happened``: one harmless line without control codes."""
    parts = (event.ts[_TIME], event.task or "", _words(event))
    return one_line(" ".join(part for part in parts if part), _LIMIT)


def _words(event: AnyEvent) -> str:
    match event:
        case RunStarted() | RunResumed() | RunEnded() | GoalJudged() | Noticed():
            return _run_words(event)
        case (
            TaskClaimed()
            | StatusChanged()
            | TaskLanded()
            | TaskStopped()
            | DecisionRaised()
            | DecisionAnswered()
            | MoneySpent()
        ):
            return _task_words(event)
        case SandboxOpened() | StepStarted() | StepFinished() | GateFinished():
            return _step_words(event)
        case PlanCreated() | PlanRevised() | TodoClosed() | TodoReopened() | TodoAdded():
            return _plan_words(event)
        case CallFinished() | CallReplayed():
            return _call_words(event)
        case ContextCompacted():
            return _compaction_words(event)
        case TaskProposed() | ProposalJudged():
            return _proposal_words(event)
        case MessageRejected() | AssumptionRecorded():
            return _message_words(event)
        case ForkClassified() | CandidateEnded() | ForkResolved():
            return _candidate_words(event)
        case _:
            assert_never(event)


def _run_words(event: RunStarted | RunResumed | RunEnded | GoalJudged | Noticed) -> str:
    match event:
        case RunStarted():
            return f"run {event.run} started: {counted(len(event.tasks), 'task')} in scope"
        case RunResumed():
            return f"run {event.run} goes on ({event.reason})"
        case RunEnded():
            return f"run {event.run} ended: {event.status.value}, exit {event.exit_code}"
        case GoalJudged():
            met = {True: "met", False: "not met", None: "not known"}[event.met]
            return f"the goal's criteria: {met}"
        case Noticed():
            return f"{event.level}: {event.text}"
        case _:
            assert_never(event)


def _task_words(
    event: TaskClaimed
    | StatusChanged
    | TaskLanded
    | TaskStopped
    | DecisionRaised
    | DecisionAnswered
    | MoneySpent,
) -> str:
    match event:
        case TaskClaimed():
            return f"{'taken up again' if event.resumed else 'begun'}: {event.title}"
        case StatusChanged():
            return f"{event.old.value} -> {event.new.value} ({event.signal})"
        case TaskLanded():
            return (
                f"landed as {event.commit[:10]} on {event.branch}, {counted(event.files, 'file')}"
            )
        case TaskStopped():
            return (
                f"stopped after {counted(event.steps, 'step')}: {event.axis.value}, {event.reason}"
            )
        case DecisionRaised():
            return f"decision {event.id} ({event.kind.value}): {event.question}"
        case DecisionAnswered():
            return f"decision {event.id} answered: {event.answer}"
        case MoneySpent():
            return f"spent so far: {spending(event.usage)}"
        case _:
            assert_never(event)


def _step_words(event: SandboxOpened | StepStarted | StepFinished | GateFinished) -> str:
    match event:
        case SandboxOpened():
            return f"[{event.candidate}] sandbox open at {event.base[:10]}"
        case StepStarted():
            return f"[{event.candidate}] step {event.iteration}: {event.step_goal or 'the task'}"
        case StepFinished():
            exit_ = "" if event.exit is None else f", exit {event.exit}"
            return f"[{event.candidate}] step {event.iteration} took {event.ms} ms{exit_}"
        case GateFinished():
            return f"[{event.candidate}] gate: {gate_line(event.checks)}"
        case _:
            assert_never(event)


def _plan_words(event: PlanCreated | PlanRevised | TodoClosed | TodoReopened | TodoAdded) -> str:
    match event:
        case PlanCreated():
            return f"[{event.candidate}] plan of {counted(len(event.todos), 'todo')}"
        case PlanRevised():
            return (
                f"[{event.candidate}] re-plan {event.replans}: {counted(len(event.todos), 'todo')}"
            )
        case TodoClosed():
            return f"[{event.candidate}] todo closed: {event.summary or event.todo}"
        case TodoReopened():
            return f"[{event.candidate}] todo open again: {event.todo}"
        case TodoAdded():
            return f"[{event.candidate}] todo added ({event.reason}): {event.todo}"
        case _:
            assert_never(event)


def _compaction_words(event: ContextCompacted) -> str:
    steps = f"steps {event.first} to {event.last} were summarised"
    by_rule = ", without a model" if event.is_fallback else ""
    return f"{steps}{by_rule}; the step waited" if event.in_line else f"{steps}{by_rule}"


def _call_words(event: CallFinished | CallReplayed) -> str:
    match event:
        case CallFinished():
            failed = ", failed" if event.is_error else ""
            return f"[{event.candidate}] {event.tool} called, {event.ms} ms{failed}"
        case CallReplayed():
            where = {"ledger": "recorded", "probe": "found done"}[event.source]
            return f"[{event.candidate}] {event.tool} not called again: {where}"
        case _:
            assert_never(event)


def _proposal_words(event: TaskProposed | ProposalJudged) -> str:
    if isinstance(event, TaskProposed):
        return f"[{event.candidate}] task proposed: {event.title}"
    if event.added:
        return f"proposed task added as {event.added}: {event.title}"
    return f"proposed task rejected, {event.reason}: {event.title}"


def _message_words(event: MessageRejected | AssumptionRecorded) -> str:
    if isinstance(event, MessageRejected):
        return f"[{event.candidate}] message rejected: {event.error}"
    who = f"[{event.candidate}] " if event.candidate else ""
    return f"{who}taken for granted: {event.text}"


def _candidate_words(event: ForkClassified | CandidateEnded | ForkResolved) -> str:
    match event:
        case ForkClassified():
            taken = f", {event.chosen} is taken" if event.chosen else ""
            words = f"fork of {event.bucket.value}{taken} ({event.reason})"
            return f"[{event.candidate}] {words}: {event.question}"
        case CandidateEnded():
            why = f": {event.reason}" if event.reason else ""
            return f"option {event.name} ended, {event.verdict.value}{why}"
        case ForkResolved():
            return f"option picked: {event.winner or 'none'} ({event.reason})"
        case _:
            assert_never(event)
