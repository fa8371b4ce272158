"""What a human is asked where a candidate's work ends by itself."""

from dataclasses import replace

from loopctl.domain import REJECTED, Axis, Baseline, DecisionDraft, StopReason, Task
from loopctl.engine import questions
from loopctl.engine.answers import as_answered
from loopctl.engine.permission import Permission
from loopctl.engine.spending import question
from loopctl.engine.terminator import is_of_run, refused_stop
from loopctl.engine.work import Tools, Work
from loopctl.events import Noticed
from loopctl.plan import Budget
from loopctl.steps import BudgetRefused
from loopctl.verdict import Blame, Check, GateResult

Asked = tuple[StopReason, tuple[DecisionDraft, ...]]
"""Why the work ends, and the questions that go with it."""


def asked(stop: StopReason, task: Task, spent: Budget, gate: GateResult | None) -> Asked:
    """Return the end with its questions, where its reason raises one.

    Work that has come as far as it can, and is kept from landing by nothing but tests that are red
    without it, is not stuck: whether they count is for a human to say.

    Args:
        stop: Why no further step is issued.
        task: With the baseline that counts for it.
        spent: Of the candidate.
        gate: What the gate found last.
    """
    if stop.axis not in {Axis.STALL, Axis.BUDGET} or is_of_run(stop):
        return stop, ()
    if gate is not None and _is_red_by_others_alone(task, gate):
        draft = questions.baseline(task, gate.checks[-1])
        return StopReason(Axis.DEFER, draft.kind), (draft,)
    if stop.axis is Axis.BUDGET:
        return stop, (questions.budget(task, stop.reason, spent),)
    return stop, ()


def refusal(refused: BudgetRefused, work: Work, spent: Budget, tools: Tools) -> Asked:
    """Return the end where a model call did not fit; the run's own budget ends all of its tasks."""
    stop = refused_stop(refused.cap)
    if not is_of_run(stop):
        return stop, (question(work.task, work.run_id, refused, spent, tools.purse),)
    if tools.run_budget.exhaust(stop):
        tools.emit(Noticed(text=f"the run's budget is spent: {refused.reason}"))
    return stop, ()


def clarified(
    work: Work, draft: DecisionDraft, permission: Permission | None
) -> tuple[Work, tuple[DecisionDraft, ...]]:
    """Return the work with the answer of somebody who is there now and is asked about it once.

    Where there is none the same work comes back, with what is to be asked at the end of the run.

    Raises:
        CancelledError: The run was asked to stop.
    """
    task = work.task
    if permission is None or task.clarified:
        return work, (draft,)
    decision = permission.ask(task, draft)
    if decision is None:
        return work, (draft,)
    if decision.answer == REJECTED:
        return work, ()
    return replace(work, task=as_answered(task, (decision,)), answer=decision.answer), ()


def raised_by(gate: GateResult, task: Task) -> DecisionDraft | None:
    """Return what a human is asked where no step of a worker could help."""
    if gate.is_unverified:
        return questions.how_to_verify(task)
    return questions.landing(task, gate.checks[-1]) if gate.is_to_be_approved else None


def _is_red_by_others_alone(task: Task, gate: GateResult) -> bool:
    """Only where single tests are reported can those that are red already be told from new ones.

    Where no more tests pass than at the base, there is nothing that should land.
    """
    last = gate.checks[-1]
    return (
        task.baseline is not Baseline.NO_NEW_FAILURES
        and last.check is Check.VERIFY
        and last.blame is Blame.PRE_EXISTING
        and bool(last.findings)
        and last.counts is not None
        and last.base_counts is not None
        and last.counts.passed > last.base_counts.passed
    )
