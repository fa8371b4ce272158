"""What a plan loop is given, and what it comes to: values."""

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Final

from loopctl.clock import Clock
from loopctl.contextports import Brain, Compactor, Memory, Recall
from loopctl.crossing import Comparison
from loopctl.domain import Axis, DecisionDraft, Goal, Option, Sha, StopReason, Task, Usage
from loopctl.engine.permission import Permission
from loopctl.engine.progress import StallLimits
from loopctl.engine.spending import RunBudget
from loopctl.errors import CancelledError
from loopctl.forking import Fork
from loopctl.moneyports import Purse
from loopctl.plan import Plan
from loopctl.ports import Describe, Emit, Gate, Pause, Repository
from loopctl.records import SessionRecord
from loopctl.steps import ForkRaised, Resume
from loopctl.storeports import ReplyStore, SessionStore
from loopctl.toolports import CallDecisions
from loopctl.verdict import GateResult

FORKED: Final = StopReason(Axis.DEFER, "fork")
"""No end of a task: its plan goes on when the options of a fork were tried."""

Choose = Callable[[ForkRaised, Task], tuple[str, str]]
"""Judges which option the goal asks for: its name, empty where the goal is silent, and why."""


@dataclass(frozen=True, slots=True)
class Trial:
    """What makes a candidate one of a fork that was met inside a task.

    Attributes:
        fork: Whose option it tries.
        is_partial: Todos are left that come after the fork, so that the gate cannot pass yet.
    """

    fork: Fork
    is_partial: bool


@dataclass(frozen=True, slots=True)
class Work:
    """What a plan loop is run on.

    Attributes:
        tree: Of the worktree as it was opened.
        ref: Under which the candidate's tree is kept after each step.
        option: The way to do it, where this candidate is one of several.
        observation: What the first step is shown.
        answer: The human's words, where the task was deferred before.
        resume: How the first step goes on, where it was interrupted in its middle.
        is_relay: One todo, no planning step, no re-plans; the worker gets no sub-goal.
        trial: Set where the candidate is one of a fork that was met inside the task.
    """

    task: Task
    goal: Goal
    run_id: str
    session: SessionRecord
    plan: Plan
    tree: str
    ref: str
    option: Option | None = None
    observation: str = ""
    answer: str | None = None
    resume: Resume | None = None
    is_relay: bool = False
    trial: Trial | None = None

    @property
    def is_partial(self) -> bool:
        """The result need not be whole: it is enough that it makes nothing worse."""
        return self.trial is not None and self.trial.is_partial


@dataclass(frozen=True, slots=True)
class Ended:
    """How the work of one candidate ended.

    Attributes:
        stop: On the axis ``goal`` the gate has passed on the diff from ``base`` to ``tree``; for a
            trial it is enough that it holds (:func:`~loopctl.engine.forks.holds`).
        ref: Keeps ``tree``; empty where nothing was made.
        gate: The evidence of the last gate run, if there was one.
        drafts: What a human is asked.
        result: The final answer, or the best partial one.
    """

    candidate: str
    stop: StopReason
    tree: str
    base: Sha
    plan: Plan
    ref: str
    gate: GateResult | None = None
    drafts: tuple[DecisionDraft, ...] = ()
    result: str = ""
    usage: Usage = field(default_factory=Usage)

    @property
    def is_passed(self) -> bool:
        """The result may land."""
        return self.stop.axis is Axis.GOAL

    @property
    def is_forked(self) -> bool:
        """A fork has to be tried before its plan goes on."""
        return self.stop == FORKED


@dataclass(frozen=True, slots=True)
class Tools:
    """What the plan loops of a run share; ``stall`` may differ by mode.

    Attributes:
        pause: The user's request to issue no further step; ``None`` where nobody can ask.
        permission: Asked before a step; without one every step is issued.
        purse: Tells what was spent; ``None`` where nothing of the run asks a model.
        run_budget: The same for every task of the run.
        replies: Gives what a model has answered in a step that was cut short.
        compactor: Keeps the pasts short; without one they grow.
        recall: Finds what may matter for a task, and for a todo.
        known: What was recalled for a task, by its candidate's session: it stands before the past
            in every request, so it stays what it was when the candidate began.
        choose: Asks a model which option of a fork the goal means; ``None`` where there is none.
        comparison: Tells whether candidates that pass do the same; without one they all do.
    """

    gate: Gate
    repository: Repository
    sessions: SessionStore
    calls: CallDecisions
    brain: Brain
    clock: Clock
    emit: Emit
    describe: Describe
    stall: StallLimits = field(default_factory=StallLimits)
    pause: Pause | None = None
    permission: Permission | None = None
    purse: Purse | None = None
    run_budget: RunBudget = field(default_factory=RunBudget)
    replies: ReplyStore | None = None
    compactor: Compactor | None = None
    recall: Recall | None = None
    known: dict[str, tuple[Memory, ...]] = field(default_factory=dict)
    choose: Choose | None = None
    comparison: Comparison | None = None

    def heed_pause(self) -> None:
        """Raise ``CancelledError`` where no further step may be issued."""
        if self.is_paused():
            raise CancelledError("the run was asked to pause")

    def is_paused(self) -> bool:
        """Return whether no further step may be issued; asked only where one would be."""
        return self.pause is not None and self.pause.is_asked()


def todo_text(task: Task, option: Option | None) -> str:
    """Return what a task is as one todo."""
    own = option.prompt if option is not None else ""
    return own or task.prompt or task.title
