"""Folds events into a :class:`~loopctl.report.summary.RunSummary`; pure.

Events are taken in the order of their numbers and each once: one that was seen already changes
nothing, so that a listener may be handed the history of a continued run and the run itself.
"""

from collections.abc import Callable, Iterable, Mapping
from dataclasses import replace
from typing import Final, assert_never

from loopctl.domain import (
    GOAL,
    Assumption,
    Decision,
    DecisionKind,
    RunStatus,
    StopReason,
    TaskStatus,
    Usage,
)
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
from loopctl.report.forks import fork_event
from loopctl.report.summary import (
    Activity,
    Notice,
    ProposalSummary,
    RunSummary,
    TaskSummary,
)
from loopctl.suggestions import AssumptionRecorded, ProposalJudged, TaskProposed, TodoAdded
from loopctl.verdict import Check, CheckResult, Verdict

_ASKING: Final = frozenset({TaskStatus.NEEDS_HUMAN, TaskStatus.BLOCKED})
"""Statuses of tasks that wait for an answer; the engine has the same."""


def summarize(events: Iterable[AnyEvent]) -> RunSummary:
    """Return how the run of ``events`` stands after the last of them."""
    summary = RunSummary()
    for event in events:
        summary = advance(summary, event)
    return summary


def advance(summary: RunSummary, event: AnyEvent) -> RunSummary:
    """Return ``summary`` after one more event; an event that it holds already changes nothing."""
    if event.seq and event.seq <= summary.seq:
        return summary
    summary = replace(summary, seq=max(event.seq, summary.seq), run_id=summary.run_id or event.run)
    match event:
        case RunStarted() | RunResumed() | RunEnded() | GoalJudged() | Noticed():
            return _run_event(summary, event)
        case DecisionRaised() | DecisionAnswered():
            return _decision_event(summary, event)
        case (
            TaskClaimed()
            | StatusChanged()
            | StepStarted()
            | StepFinished()
            | TodoClosed()
            | PlanRevised()
            | AssumptionRecorded()
            | GateFinished()
            | ForkClassified()
            | CandidateEnded()
            | ForkResolved()
            | TaskLanded()
            | TaskStopped()
        ):
            if isinstance(event, TaskLanded):
                summary = _with_landing(summary, event)
            if isinstance(event, StatusChanged) and event.task is not None:
                summary = _asked_again(summary, {event.task: event.new})
            return _change(summary, event.task, lambda task: _task_event(task, event))
        case MoneySpent() | ContextCompacted() | ProposalJudged():
            return _accounted(summary, event)
        case SandboxOpened() | PlanCreated() | TodoReopened() | MessageRejected() | TaskProposed():
            return summary
        case CallFinished() | CallReplayed() | TodoAdded():
            return summary
        case _:
            assert_never(event)


def _accounted(
    summary: RunSummary, event: MoneySpent | ContextCompacted | ProposalJudged
) -> RunSummary:
    if isinstance(event, ProposalJudged):
        one = ProposalSummary(event.task, event.title, event.serves, event.added, event.reason)
        return replace(summary, proposals=(*summary.proposals, one))
    return _spent(summary, event) if isinstance(event, MoneySpent) else _compacted(summary, event)


def _compacted(summary: RunSummary, event: ContextCompacted) -> RunSummary:
    """Where nothing is ever summarised ahead, that a step has waited says nothing."""
    if not event.threshold_events:
        return summary
    return replace(
        summary,
        compactions=summary.compactions + 1,
        compactions_in_line=summary.compactions_in_line + event.in_line,
    )


def _run_event(
    summary: RunSummary, event: RunStarted | RunResumed | RunEnded | GoalJudged | Noticed
) -> RunSummary:
    match event:
        case RunStarted():
            begun = replace(
                summary,
                goal=event.goal,
                base=event.base,
                head=event.base,
                branch=event.branch,
                scope=event.scope,
                settings_hash=event.settings_hash,
                started=event.ts,
            )
            return _driven(begun, event)
        case RunResumed():
            return _driven(summary, event)
        case RunEnded():
            return replace(
                _settled(summary),
                status=event.status,
                exit_code=event.exit_code,
                head=event.head,
                waits=event.waits,
                ended=event.ts,
                landed_here=event.landed_here or summary.landed_here,
            )
        case GoalJudged():
            # What there is to ask about the goal is asked anew, after each time it was judged.
            left = tuple(
                one
                for one in summary.decisions
                if one.task != GOAL or one.kind is DecisionKind.KICKOFF
            )
            return replace(summary, goal_met=event.met, criteria=event.criteria, decisions=left)
        case Noticed():
            notice = Notice(event.text, event.level == "warning", event.task)
            known = notice in summary.notices
            return summary if known else replace(summary, notices=(*summary.notices, notice))
        case _:
            assert_never(event)


def _driven(summary: RunSummary, event: RunStarted | RunResumed) -> RunSummary:
    """The run is under way: its end, if it had one, is no more; a crash left nobody at work."""
    known = {task.id for task in summary.tasks}
    new = (TaskSummary(id=key, title=title) for key, title in event.tasks if key not in known)
    statuses = dict(event.statuses)
    summary = _asked_again(summary, statuses)
    return replace(
        summary,
        tasks=tuple(
            replace(task, activity=None, status=statuses.get(task.id, task.status))
            for task in (*summary.tasks, *new)
        ),
        status=RunStatus.RUNNING,
        ended=None,
        exit_code=None,
        waits=(),
        invocations=summary.invocations + 1,
    )


def _settled(summary: RunSummary) -> RunSummary:
    return replace(summary, tasks=tuple(replace(task, activity=None) for task in summary.tasks))


def _asked_again(summary: RunSummary, statuses: Mapping[str, TaskStatus]) -> RunSummary:
    """Tasks have these statuses now: the questions of those that wait for an answer stand.

    This is the rule by which the engine tells what is open; a question that is raised amid the
    work stands until the work has an end.
    """
    moved = {task: status in _ASKING for task, status in statuses.items()}
    left = [one for one in summary.decisions if moved.get(one.task, True)]
    back = [one for one in summary.passed_over if moved.get(one.task, False)]
    over = [one for one in summary.decisions if not moved.get(one.task, True)]
    still = [one for one in summary.passed_over if not moved.get(one.task, False)]
    return replace(summary, decisions=(*back, *left), passed_over=(*still, *over))


def _spent(summary: RunSummary, event: MoneySpent) -> RunSummary:
    """The ledger of the money knows more than the steps: it takes the place of their sum."""
    if event.task is None:
        return replace(summary, own_usage=event.usage)
    return _change(summary, event.task, lambda task: replace(task, usage=event.usage))


def _with_landing(summary: RunSummary, event: TaskLanded) -> RunSummary:
    """What a landed task once asked is asked no more."""
    left = tuple(known for known in summary.decisions if known.task != event.task)
    over = tuple(known for known in summary.passed_over if known.task != event.task)
    return replace(summary, head=event.commit, decisions=left, passed_over=over)


def _decision_event(summary: RunSummary, event: DecisionRaised | DecisionAnswered) -> RunSummary:
    if isinstance(event, DecisionRaised):
        decision = Decision(
            id=event.id,
            task=event.task or event.id.rpartition(".")[0],
            run_id=event.run,
            kind=event.kind,
            question=event.question,
            best_guess=event.best_guess,
            options=event.options,
            reason=event.reason,
        )
        summary = _without(summary, event.id)
        return replace(summary, decisions=(*summary.decisions, decision))
    answered = tuple(
        replace(known, answer=event.answer, answered_at=event.ts)
        for known in (*summary.decisions, *summary.passed_over)
        if known.id == event.id
    )
    return replace(
        _without(summary, event.id),
        answered=(*summary.answered, *answered),
    )


def _without(summary: RunSummary, decision_id: str) -> RunSummary:
    return replace(
        summary,
        decisions=tuple(one for one in summary.decisions if one.id != decision_id),
        passed_over=tuple(one for one in summary.passed_over if one.id != decision_id),
    )


def _change(
    summary: RunSummary, task_id: str | None, change: Callable[[TaskSummary], TaskSummary]
) -> RunSummary:
    """A task that the start of the run did not name is appended: nothing is lost."""
    if task_id is None:
        return summary
    if summary.task(task_id) is None:
        summary = replace(summary, tasks=(*summary.tasks, TaskSummary(id=task_id)))
    return replace(
        summary,
        tasks=tuple(change(task) if task.id == task_id else task for task in summary.tasks),
    )


_TaskEvent = (
    TaskClaimed
    | StatusChanged
    | StepStarted
    | StepFinished
    | TodoClosed
    | PlanRevised
    | AssumptionRecorded
    | GateFinished
    | ForkClassified
    | CandidateEnded
    | ForkResolved
    | TaskLanded
    | TaskStopped
)


def _task_event(task: TaskSummary, event: _TaskEvent) -> TaskSummary:
    match event:
        case TaskClaimed():
            return _claimed(task, event)
        case StatusChanged():
            return replace(task, status=event.new)
        case StepStarted() | StepFinished() | TodoClosed() | GateFinished():
            return _step_event(task, event)
        case PlanRevised():
            return replace(task, replans=max(task.replans, event.replans))
        case AssumptionRecorded():
            new = Assumption(event.text, event.decision)
            known = new in task.assumptions
            return task if known else replace(task, assumptions=(*task.assumptions, new))
        case ForkClassified() | CandidateEnded() | ForkResolved():
            return fork_event(task, event)
        case TaskLanded():
            return replace(
                task,
                landed=event.commit,
                files=event.files,
                status=TaskStatus.DONE,
                result=event.result or task.result,
            )
        case TaskStopped():
            return _stopped(task, event)
        case _:
            assert_never(event)


def _claimed(task: TaskSummary, event: TaskClaimed) -> TaskSummary:
    return replace(
        task,
        title=event.title or task.title,
        worker=event.worker,
        model=event.model,
        status=TaskStatus.IN_PROGRESS,
        stop=None,
        activity=Activity(since=event.ts),
        begun=event.ts,
        ended="",
    )


def _step_event(
    task: TaskSummary, event: StepStarted | StepFinished | TodoClosed | GateFinished
) -> TaskSummary:
    activity = task.activity or Activity(since=event.ts)
    match event:
        case StepStarted():
            now = replace(
                activity,
                candidate=event.candidate,
                iteration=event.iteration,
                step_goal=event.step_goal,
                is_gating=False,
            )
            return replace(task, activity=now)
        case TodoClosed():
            return replace(task, activity=replace(activity, is_gating=True))
        case StepFinished():
            return replace(task, steps=task.steps + 1, usage=task.usage + event.usage)
        case GateFinished():
            others = tuple(pair for pair in task.gates if pair[0] != event.candidate)
            return replace(
                task,
                gates=(*others, (event.candidate, event.checks)),
                gate_failures=task.gate_failures + (not _passed(event.checks)),
                failed_gate=task.failed_gate if _passed(event.checks) else event.checks,
                activity=replace(activity, last_gate=gate_line(event.checks), is_gating=False),
            )
        case _:
            assert_never(event)


def _passed(checks: tuple[CheckResult, ...]) -> bool:
    """Return whether nothing went wrong; that a draft is criticised is what drafts are for."""
    last = checks[-1] if checks else None
    is_criticised = last is not None and last.check is Check.CRITIQUE and last.tail != ""
    return last is not None and (last.verdict is Verdict.PASS or is_criticised)


def gate_line(checks: tuple[CheckResult, ...]) -> str:
    """Return the evidence of a gate in a few words: the last check and what it found."""
    if not checks:
        return ""
    last = checks[-1]
    words = [last.check.value, last.verdict.value]
    if last.blame:
        words.append(f"({last.blame.value})")
    if any(check.vacuous for check in checks):
        words.append("(vacuous)")
    return " ".join(words)


def _stopped(task: TaskSummary, event: TaskStopped) -> TaskSummary:
    """The engine's totals count what no step shows (planning); steps count every invocation."""
    spent, told = task.usage, event.usage
    return replace(
        task,
        stop=StopReason(event.axis, event.reason),
        steps=max(task.steps, event.steps),
        replans=max(task.replans, event.replans),
        result=event.result or task.result,
        ref=event.ref or task.ref,
        usage=Usage(
            max(spent.prompt_tokens, told.prompt_tokens),
            max(spent.completion_tokens, told.completion_tokens),
            max(spent.usd, told.usd),
        ),
        activity=None,
        ended=event.ts,
    )
