"""The one model of a run that every view is rendered from: the live view, reports, ``status``.

:func:`loopctl.report.fold.summarize` makes it from events; :func:`to_document` gives the document
of ``run.json`` and ``--json``.
"""

from dataclasses import dataclass, field
from typing import Any, Final

from loopctl.domain import (
    Assumption,
    Decision,
    RunStatus,
    Scope,
    StopReason,
    TaskStatus,
    Usage,
    Wait,
)
from loopctl.forking import Bucket
from loopctl.report.wording import decision_document
from loopctl.verdict import CheckResult, Verdict

SCHEMA: Final = 1
"""Of the document of ``run.json``."""

MAIN: Final = "main"
"""The candidate of a task without options."""


IN_LINE_SHARE: Final = 0.1
"""Of a run's summaries; where steps waited for more, the threshold is set badly."""

IN_LINE_MARK: Final = "summaries of their past"
"""By which the warning about it is known again in a run's document."""


@dataclass(frozen=True, slots=True)
class Notice:
    """Something that the user should know and that changed no status."""

    text: str
    is_warning: bool
    task: str | None = None


@dataclass(frozen=True, slots=True)
class CandidateSummary:
    """One of several competing candidates of a task."""

    name: str
    verdict: Verdict
    ref: str
    reason: str = ""
    changed_lines: int | None = None


@dataclass(frozen=True, slots=True)
class ForkSummary:
    """A fork that was met inside a task.

    Attributes:
        chosen: The option that is taken, or the candidate that has won; empty where neither is.
    """

    question: str
    bucket: Bucket
    reason: str
    chosen: str = ""


@dataclass(frozen=True, slots=True)
class Activity:
    """What a task is being worked on with at this moment.

    Attributes:
        since: When the work on the task was begun or taken up; a time stamp.
        is_gating: A todo was closed, and the gate has not judged it yet.
    """

    since: str
    candidate: str = ""
    iteration: int = 0
    step_goal: str = ""
    last_gate: str = ""
    is_gating: bool = False


@dataclass(frozen=True, slots=True)
class TaskSummary:
    """How one task of the run's scope stands.

    Attributes:
        landed: The commit made for it; empty until then.
        stop: Why the work on it last ended; ``None`` before that and while it is worked on.
        gates: For each candidate the evidence of its newest gate, the newest last.
        gate_failures: Gate runs that did not pass, over all candidates.
        failed_gate: The evidence of the last of those; a landing's own gate counts too.
        winner: The candidate that the gate picked among the task's options.
        forks: Those that were met inside the task, the newest last.
        ref: Under which the tree of its last attempt is kept; empty where there is none.
        activity: ``None`` while nobody works on it.
        begun: When the newest work on it was begun or taken up; a time stamp.
        ended: When that work ended; empty before.
    """

    id: str
    title: str = ""
    status: TaskStatus = TaskStatus.TODO
    landed: str = ""
    files: int = 0
    steps: int = 0
    replans: int = 0
    worker: str = ""
    model: str | None = None
    stop: StopReason | None = None
    gates: tuple[tuple[str, tuple[CheckResult, ...]], ...] = ()
    gate_failures: int = 0
    failed_gate: tuple[CheckResult, ...] = ()
    candidates: tuple[CandidateSummary, ...] = ()
    winner: str | None = None
    fork_reason: str = ""
    forks: tuple[ForkSummary, ...] = ()
    assumptions: tuple[Assumption, ...] = ()
    result: str = ""
    ref: str = ""
    usage: Usage = field(default_factory=Usage)
    activity: Activity | None = None
    begun: str = ""
    ended: str = ""

    @property
    def gate(self) -> tuple[CheckResult, ...]:
        """The evidence that counts: the winner's, else the newest that is no loser's."""
        by_name = dict(self.gates)
        if self.winner in by_name:
            return by_name[self.winner]
        lost = {one.name for one in self.candidates if not self.has_won(one.name)}
        standing = [checks for name, checks in self.gates if name not in lost]
        return (standing or [*by_name.values()] or [()])[-1]

    def has_won(self, candidate: str) -> bool:
        """Return whether a candidate was picked, for the task or at a fork inside it."""
        return candidate in {self.winner, *(fork.chosen for fork in self.forks)}

    @property
    def is_vacuous(self) -> bool:
        """Its verify passes without the change as well."""
        return any(check.vacuous for check in self.gate)


@dataclass(frozen=True, slots=True)
class ProposalSummary:
    """A task that a worker has proposed: the id that it was given, or why it was rejected."""

    task: str | None
    title: str
    serves: str
    added: str = ""
    reason: str = ""


@dataclass(frozen=True, slots=True)
class RunSummary:
    """How a run stands, over all invocations that drove it.

    Attributes:
        head: The newest commit of the integration branch; the base until something lands.
        tasks: Those in scope, in the order of the manifest.
        decisions: The open ones, in the order in which they were raised.
        passed_over: Those that nobody has answered, but whose task does not wait for an answer.
        answered: The answered ones, likewise.
        waits: For each task left at the end, the one thing it waits for.
        goal_met: ``None`` where nothing could judge the goal.
        landed_here: The commit that the user's branch was moved to.
        own_usage: What no task has spent: the run itself, on its goal.
        invocations: How often the run was driven.
        compactions: Summaries of a past, where they are made ahead of need.
        compactions_in_line: How many of them a step has waited for.
        seq: The number of the newest event in here.
    """

    run_id: str = ""
    status: RunStatus = RunStatus.RUNNING
    goal: str = ""
    base: str = ""
    head: str = ""
    branch: str = ""
    scope: Scope = field(default_factory=Scope)
    settings_hash: str = ""
    started: str = ""
    ended: str | None = None
    exit_code: int | None = None
    tasks: tuple[TaskSummary, ...] = ()
    decisions: tuple[Decision, ...] = ()
    passed_over: tuple[Decision, ...] = ()
    answered: tuple[Decision, ...] = ()
    notices: tuple[Notice, ...] = ()
    waits: tuple[Wait, ...] = ()
    goal_met: bool | None = None
    criteria: tuple[tuple[str, Verdict, str], ...] = ()
    landed_here: str | None = None
    own_usage: Usage = field(default_factory=Usage)
    invocations: int = 0
    proposals: tuple[ProposalSummary, ...] = ()
    compactions: int = 0
    compactions_in_line: int = 0
    seq: int = 0

    @property
    def usage(self) -> Usage:
        """What the run has spent, with all of its tasks."""
        return sum((task.usage for task in self.tasks), self.own_usage)

    @property
    def all_notices(self) -> tuple[Notice, ...]:
        """Those of the run, and what follows from its numbers."""
        if self.compactions_in_line <= IN_LINE_SHARE * self.compactions:
            return self.notices
        text = (
            f"steps had to wait for {self.compactions_in_line} of {self.compactions} "
            f"{IN_LINE_MARK}: lower context.compaction_threshold_events, or raise context.window_tokens"
        )
        return (*self.notices, Notice(text, is_warning=True))

    def task(self, task_id: str) -> TaskSummary | None:
        """Return the task of that id, where it is in scope."""
        return next((task for task in self.tasks if task.id == task_id), None)


def to_document(summary: RunSummary) -> dict[str, Any]:
    """Return the document of ``run.json`` and ``--json``: JSON values only."""
    return {
        "schema": SCHEMA,
        "run_id": summary.run_id,
        "status": summary.status.value,
        "exit_code": summary.exit_code,
        "goal": summary.goal,
        "base": summary.base,
        "head": summary.head,
        "branch": summary.branch,
        "settings_hash": summary.settings_hash,
        "started": summary.started,
        "ended": summary.ended,
        "tasks": [task_document(task) for task in summary.tasks],
        "decisions": [decision_document(decision) for decision in summary.decisions],
        "waits": [{"task": wait.task, "reason": wait.reason} for wait in summary.waits],
        "notices": [notice.text for notice in summary.all_notices],
        "usage": _usage(summary.usage),
    }


def task_document(task: TaskSummary) -> dict[str, Any]:
    """Return a task as it stands in the document of its run."""
    return {
        "id": task.id,
        "status": task.status.value,
        "landed": task.landed or None,
        "steps": task.steps,
        "replans": task.replans,
        "worker": task.worker or None,
        "model": task.model,
        "stop": {"axis": task.stop.axis.value, "reason": task.stop.reason} if task.stop else None,
        "gate": [_check(result) for result in task.gate],
        "candidates": _candidates(task),
        "assumptions": [{"text": a.text, "decision": a.decision} for a in task.assumptions],
        "result": task.result,
        "usage": _usage(task.usage),
    }


def _candidates(task: TaskSummary) -> list[dict[str, Any]]:
    """Competing candidates; for a task without options the one whose tree is kept."""
    found = [(one, task.has_won(one.name)) for one in task.candidates]
    if not found and task.ref:
        verdict = task.gate[-1].verdict if task.gate else Verdict.UNKNOWN
        found = [(CandidateSummary(MAIN, verdict, task.ref), bool(task.landed))]
    return [
        {"name": one.name, "won": won, "verdict": one.verdict.value, "ref": one.ref}
        for one, won in found
    ]


def _check(result: CheckResult) -> dict[str, Any]:
    return {
        "check": result.check.value,
        "verdict": result.verdict.value,
        "blame": result.blame.value if result.blame else None,
        "ms": result.ms,
        "exit": result.exit,
        "vacuous": result.vacuous,
        "tail": result.tail,
    }


def _usage(usage: Usage) -> dict[str, Any]:
    return {
        "prompt_tokens": usage.prompt_tokens,
        "completion_tokens": usage.completion_tokens,
        "usd": usage.usd,
    }
