"""Metrics in the text format of Prometheus, made from events alone.

Names are those of the loop's low-level design §11. Every family is printed, also with zeros, so
that an alert on it can tell "none" from "not there".

Source: https://prometheus.io/docs/instrumenting/exposition_formats/ ("Text-based format").
"""

from collections import Counter
from collections.abc import Iterable
from typing import Final, assert_never

from loopctl.domain import APPROVED, REJECTED, TIMED_OUT, Axis, DecisionKind
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
from loopctl.report.exposition import Histogram, family, histogram
from loopctl.suggestions import AssumptionRecorded, ProposalJudged, TaskProposed, TodoAdded

STALLS: Final = (
    "no_progress",
    "replan_cap",
    "unchanged_tree",
    "same_type_error",
    "same_tool_calls",
    "fork_failed",
    "worker_stuck",
)
OUTCOMES: Final = ("approved", "rejected", "timeout")
BUCKETS_S: Final = (0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5)
"""Upper bounds; the envelope of a step's overhead is 0.5 s at p95."""

_ANSWERS: Final = {APPROVED: "approved", REJECTED: "rejected", TIMED_OUT: "timeout"}

_Candidate = tuple[str | None, str]
"""Task and candidate."""


class Metrics:
    """What the events of one run or of several come to; hand them over run by run."""

    def __init__(self) -> None:
        self._plans = 0
        self._replans = 0
        self._todos = 0
        self._replays = 0
        self._waited = 0
        self._terminations: Counter[str] = Counter({axis.value: 0 for axis in Axis})
        self._stalls: Counter[str] = Counter(dict.fromkeys(STALLS, 0))
        self._outcomes: Counter[str] = Counter(dict.fromkeys(OUTCOMES, 0))
        self._overhead = Histogram(BUCKETS_S)
        self._approvals: set[tuple[str, str]] = set()
        self._iterations: dict[_Candidate, int] = {}
        self._closed: dict[_Candidate, list[int]] = {}

    def add(self, events: Iterable[AnyEvent]) -> None:
        """Count all events of one run so far, in order."""
        for event in events:
            self._count(event)
        self._settle_all()
        self._iterations.clear()

    def _count(self, event: AnyEvent) -> None:
        match event:
            case PlanCreated():
                self._plans += 1
            case PlanRevised():
                self._replans += 1
            case StepStarted() | StepFinished():
                self._step(event)
            case TodoClosed() | TodoReopened():
                self._todo(event)
            case CallReplayed() | ContextCompacted():
                self._single(event)
            case TaskStopped():
                self._terminations[event.axis.value] += 1
                if event.axis is Axis.STALL:
                    self._stalls[event.reason] += 1
            case DecisionRaised() | DecisionAnswered():
                self._decision(event)
            case (
                RunStarted()
                | RunResumed()
                | Noticed()
                | TaskClaimed()
                | StatusChanged()
                | SandboxOpened()
                | MessageRejected()
                | TaskProposed()
                | ProposalJudged()
                | AssumptionRecorded()
                | TodoAdded()
                | CallFinished()
                | GateFinished()
                | ForkClassified()
                | CandidateEnded()
                | ForkResolved()
                | TaskLanded()
                | MoneySpent()
                | GoalJudged()
                | RunEnded()
            ):
                pass
            case _:
                assert_never(event)

    def _step(self, event: StepStarted | StepFinished) -> None:
        if isinstance(event, StepFinished):
            # Events of a version that did not measure say nothing.
            if event.phases:
                self._overhead.observe(event.overhead_ms / 1000)
            return
        candidate = (event.task, event.candidate)
        # A todo that was closed in this very iteration was closed by a step that is taken again.
        closed = self._closed.pop(candidate, [])
        self._todos += sum(iteration < event.iteration for iteration in closed)
        self._iterations[candidate] = event.iteration

    def _todo(self, event: TodoClosed | TodoReopened) -> None:
        candidate = (event.task, event.candidate)
        closed = self._closed.setdefault(candidate, [])
        if isinstance(event, TodoClosed):
            closed.append(self._iterations.get(candidate, 0))
        elif closed:
            closed.pop()

    def _single(self, event: CallReplayed | ContextCompacted) -> None:
        if isinstance(event, CallReplayed):
            self._replays += 1
        else:
            self._waited += event.in_line

    def _settle_all(self) -> None:
        self._todos += sum(len(closed) for closed in self._closed.values())
        self._closed.clear()

    def _decision(self, event: DecisionRaised | DecisionAnswered) -> None:
        decision = (event.run, event.id)
        if isinstance(event, DecisionRaised):
            if event.kind is DecisionKind.APPROVAL:
                self._approvals.add(decision)
        elif decision in self._approvals and event.answer in _ANSWERS:
            self._outcomes[_ANSWERS[event.answer]] += 1

    def text(self) -> str:
        """Return all families, as a scrape or a textfile collector reads them."""
        return "".join(
            (
                family(
                    "autoloop_plans_started_total",
                    "Plans that were begun, one for each candidate of a task.",
                    {(): self._plans},
                ),
                family(
                    "autoloop_todos_completed_total",
                    "Todos that were closed and that no gate has opened again.",
                    {(): self._todos},
                ),
                family(
                    "autoloop_replans_total", "Re-plans that were accepted.", {(): self._replans}
                ),
                family(
                    "autoloop_terminations_total",
                    "Ends of the work on a task, by the axis that ended it.",
                    {(("axis", axis),): count for axis, count in self._terminations.items()},
                ),
                family(
                    "autoloop_stall_total",
                    "Ends on the stall axis, by reason.",
                    {(("reason", reason),): count for reason, count in self._stalls.items()},
                ),
                histogram(
                    "autoloop_step_overhead_seconds",
                    "What the harness itself took for a step: checkpoint, context, tree.",
                    self._overhead,
                ),
                family(
                    "autoloop_interrupt_approvals_total",
                    "Approvals that were asked for and settled, by outcome.",
                    {(("outcome", outcome),): count for outcome, count in self._outcomes.items()},
                ),
                family(
                    "mcp_idempotency_dedup_hits_total",
                    "Tool calls that were answered from the ledger and not made again.",
                    {(): self._replays},
                ),
                family(
                    "compaction_sync_fallback_total",
                    "Compactions that a step had to wait for.",
                    {(): self._waited},
                ),
            )
        )


def metrics_text(runs: Iterable[Iterable[AnyEvent]]) -> str:
    """Return the metrics of all ``runs`` together, each the events of one run in order."""
    metrics = Metrics()
    for events in runs:
        metrics.add(events)
    return metrics.text()
