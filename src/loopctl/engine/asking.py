"""What a human is asked where a candidate's work ends by itself: pure."""

from loopctl.domain import Axis, Baseline, DecisionDraft, StopReason, Task
from loopctl.engine import questions
from loopctl.engine.terminator import is_of_run
from loopctl.plan import Budget
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
