"""What was spent: by a candidate, kept in its plan; by a task and its run, kept in the purse."""

import threading
from dataclasses import replace

from loopctl.domain import DecisionDraft, StopReason, Task, Usage
from loopctl.engine import questions
from loopctl.engine.pursuit import Step
from loopctl.engine.terminator import refused_stop
from loopctl.moneyports import Purse
from loopctl.plan import Budget, Plan
from loopctl.steps import BudgetRefused


class RunBudget:
    """Whether the run's own budget is spent: what one task was refused ends all others too."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._stop: StopReason | None = None

    @property
    def stop(self) -> StopReason | None:
        """Why no further step of the run is issued; ``None`` while there is money."""
        with self._lock:
            return self._stop

    def exhaust(self, stop: StopReason) -> bool:
        """Remember that nothing is left; say whether this is the first to be told."""
        with self._lock:
            is_first = self._stop is None
            self._stop = self._stop or stop
            return is_first


def spent(plan: Plan, usage: Usage | None = None, *, ms: int = 0, loops: int = 0) -> Plan:
    """Return the plan with that much more spent: model usage, milliseconds, whole steps."""
    budget, more = plan.budget, usage or Usage()
    budget = replace(
        budget,
        loops_used=budget.loops_used + loops,
        wall_ms=budget.wall_ms + ms,
        tokens_used=budget.tokens_used + more.prompt_tokens + more.completion_tokens,
        usd_used=budget.usd_used + more.usd,
    )
    return replace(plan, budget=budget)


def stepped(plan: Plan, step: Step, ms: int) -> Plan:
    """Return the plan with one step more, its todo tried once more and its cost spent."""
    todo = plan.active
    if todo is not None:
        plan = plan.with_todo(plan.cursor, attempts=todo.attempts + 1)
    loops = 0 if step.is_environment or step.is_void else 1
    return spent(plan, step.usage, ms=ms, loops=loops)


def question(
    task: Task, run_id: str, refused: BudgetRefused, budget: Budget, purse: Purse | None
) -> DecisionDraft:
    """Return what a human is asked where a model call did not fit under a cap of the task.

    Args:
        task: Whose budget it is.
        run_id: In which it was spent.
        refused: By a cap of the task, or for want of a price.
        budget: Of the candidate, which counts where there is no purse.
        purse: Knows what the whole task has spent, its questions and other candidates included.
    """
    if refused.cap is None:
        return questions.unknown_price(task, refused)
    cap = refused_stop(refused.cap).reason
    if purse is not None:
        whole = purse.spent(run_id, task.id)
        tokens = whole.prompt_tokens + whole.completion_tokens
        return questions.refused(task, cap, refused, questions.rounded(cap, tokens, whole.usd))
    return questions.refused(task, cap, refused, questions.used_of(task, cap, budget))
