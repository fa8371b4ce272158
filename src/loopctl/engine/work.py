"""What a plan loop is given, and what it comes to: values."""

from dataclasses import dataclass, field

from loopctl.clock import Clock
from loopctl.contextports import Brain, Compactor, Memory, Recall
from loopctl.domain import Axis, DecisionDraft, Goal, Option, Sha, StopReason, Task, Usage
from loopctl.engine.permission import Permission
from loopctl.engine.progress import StallLimits
from loopctl.engine.spending import RunBudget
from loopctl.moneyports import Purse
from loopctl.plan import Plan
from loopctl.ports import Describe, Emit, Gate, Pause, Repository
from loopctl.records import SessionRecord
from loopctl.steps import Resume
from loopctl.storeports import ReplyStore, SessionStore
from loopctl.toolports import CallDecisions
from loopctl.verdict import GateResult


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


@dataclass(frozen=True, slots=True)
class Ended:
    """How the work of one candidate ended.

    Attributes:
        stop: On the axis ``goal`` the gate has passed on the diff from ``base`` to ``tree``.
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

    def is_paused(self) -> bool:
        """Return whether no further step may be issued; asked only where one would be."""
        return self.pause is not None and self.pause.is_asked()


def todo_text(task: Task, option: Option | None) -> str:
    """Return what a task is as one todo."""
    own = option.prompt if option is not None else ""
    return own or task.prompt or task.title
