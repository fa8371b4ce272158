"""One invocation's drive of a run: begin, reconcile, drive, judge the goal, end."""

import contextlib
import threading
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Final, Literal, cast

from loopctl.clock import stamp
from loopctl.domain import (
    GOAL,
    Decision,
    DecisionKind,
    RunStatus,
    Scope,
    Sha,
    TaskId,
    TaskStatus,
    Usage,
)
from loopctl.engine import outcomes, recovery
from loopctl.engine.anchor import Anchor
from loopctl.engine.answers import assumption
from loopctl.engine.board import Board
from loopctl.engine.criteria import Judged, judge_goal
from loopctl.engine.driver import Driver
from loopctl.engine.landing import Landing
from loopctl.engine.outcome import outcome
from loopctl.engine.standing import ASKING, newest_runs
from loopctl.engine.taskrun import RunContext
from loopctl.engine.thread import lay_down, take_up
from loopctl.errors import CancelledError
from loopctl.events import DecisionRaised, MoneySpent, Noticed, RunEnded, RunResumed, RunStarted
from loopctl.records import RunRecord, Supposition
from loopctl.storeports import DecisionStore, RunStore
from loopctl.suggestions import AssumptionRecorded

_WITHOUT_CRITERIA: Final = (
    "the goal has no done-criteria, so the run ends since all that was asked for is done"
)


@dataclass(frozen=True, slots=True)
class Beginning:
    """How this invocation begins.

    Attributes:
        reason: ``None`` for a new run, else why it is driven on.
        tasks: The run's own tasks: those its end is judged on.
        scope: Of the run as it was started.
        notices: What the user should know before the first step.
        answered: Decisions that were answered just now.
        freed: Tasks that those answers set free.
        suppositions: What was assumed of the goal; a person may still decide otherwise.
        settled: What a person has decided of the goal, as sentences.
        recorded: Called when what was assumed and decided is in the events.
        overturned: Tasks that are to be done again, with the answer that contradicts their ground.
    """

    reason: Literal["answer", "resume", "crash"] | None
    tasks: tuple[tuple[TaskId, str], ...]
    scope: Scope
    notices: Sequence[Noticed] = ()
    answered: Sequence[Decision] = ()
    freed: Sequence[TaskId] = ()
    suppositions: Sequence[Supposition] = ()
    settled: Sequence[str] = ()
    recorded: Callable[[], None] = lambda: None
    overturned: Mapping[TaskId, Decision] = field(default_factory=dict)


class Run:
    """Drives one run once; everything it needs is handed to it."""

    def __init__(
        self,
        record: RunRecord,
        context: RunContext,
        board: Board,
        landing: Landing,
        driver: Driver,
        *,
        anchor: Anchor,
        runs: RunStore,
        decisions: DecisionStore,
        cancel: threading.Event,
    ) -> None:
        self._record = record
        self._context = context
        self._tools = context.tools
        self._board = board
        self._landing = landing
        self._driver = driver
        self._anchor = anchor
        self._runs = runs
        self._decisions = decisions
        self._cancel = cancel

    def drive(self, beginning: Beginning, land_here: Callable[[], str | None]) -> RunEnded:
        """Return how the run ended; written to the events and the store.

        Args:
            beginning: How this invocation begins.
            land_here: Called at the end; fast-forwards the user's branch where that was asked
                for, and says to which commit.
        """
        self._runs.set_run_status(self._record.id, RunStatus.RUNNING, None)
        self._begin(beginning)
        recovery.reconcile(
            self._board, self._tools.repository.landings, self._tools.sessions.last_run
        )
        outcomes.settle(self._decisions.decisions(), self._tools.calls)
        self._repeat_decisions(beginning)
        self._driver.drive()
        return self._end(beginning, land_here)

    def _begin(self, beginning: Beginning) -> None:
        statuses = tuple(self._board.statuses(task for task, _ in beginning.tasks).items())
        if beginning.reason is None:
            self._tools.emit(
                RunStarted(
                    goal=self._context.goal.text,
                    base=self._record.base,
                    branch=self._record.branch,
                    scope=beginning.scope,
                    tasks=beginning.tasks,
                    settings_hash=self._record.settings_hash,
                    statuses=statuses,
                )
            )
        else:
            self._tools.emit(
                RunResumed(reason=beginning.reason, tasks=beginning.tasks, statuses=statuses)
            )
            take_up(self._tools.brain, self._tools.emit)
        for notice in beginning.notices:
            self._tools.emit(notice)
        self._suppose(beginning)
        beginning.recorded()
        self._driver.follow(beginning.answered, beginning.freed, beginning.overturned)

    def _suppose(self, beginning: Beginning) -> None:
        """Record what was assumed and decided of the goal, before anything rests on it."""
        if beginning.settled:
            self._tools.brain.update(
                lambda capsule: replace(
                    capsule,
                    key_decisions=_once(*capsule.key_decisions, *beginning.settled),
                )
            )
        answered = {
            one.question
            for one in self._decisions.decisions(task=GOAL)
            if one.run_id == self._record.id and one.answer is not None
        }
        for one in beginning.suppositions:
            if one.draft.question in answered:
                continue
            decision = self._driver.ask(GOAL, one.draft)
            text = assumption(decision.question, decision.best_guess)
            for task in one.tasks:
                self._tools.emit(
                    AssumptionRecorded(task=task, candidate="", text=text, decision=decision.id)
                )
            self._tools.brain.update(
                lambda capsule, text=text, question=decision.question: replace(  # type: ignore[misc]
                    capsule,
                    assumptions=_once(*capsule.assumptions, text),
                    open_questions=_once(*capsule.open_questions, question),
                )
            )

    def _repeat_decisions(self, beginning: Beginning) -> None:
        """Put the questions that earlier runs left open into this run's report too."""
        for decision in self._open_decisions(beginning):
            if decision.run_id != self._record.id:
                self._tools.emit(
                    DecisionRaised(
                        task=decision.task,
                        id=decision.id,
                        kind=decision.kind,
                        question=decision.question,
                        best_guess=decision.best_guess,
                        options=decision.options,
                        reason=decision.reason,
                    )
                )

    def _open_decisions(self, beginning: Beginning) -> tuple[Decision, ...]:
        statuses = self._board.statuses(task for task, _ in beginning.tasks)
        asking = {task for task, status in statuses.items() if status in ASKING}
        decisions = self._decisions.decisions()
        newest = newest_runs(decisions)
        return tuple(
            decision
            for decision in decisions
            if decision.answer is None
            and decision.task in asking
            and decision.run_id == newest[decision.task]
        )

    def _end(self, beginning: Beginning, land_here: Callable[[], str | None]) -> RunEnded:
        statuses = self._board.statuses(self._own(beginning))
        pause = self._tools.pause
        is_paused = pause is not None and pause.is_heeded
        if is_paused:
            self._tools.emit(
                Noticed(text="paused as asked; `loop resume` carries on", level="info")
            )
        judged = Judged()
        with contextlib.suppress(CancelledError):
            if not (self._cancel.is_set() or is_paused):
                judged = self._judge_goal(beginning, statuses)
        is_interrupted = self._cancel.is_set() or is_paused
        open_ids = [decision.id for decision in self._open_decisions(beginning)]
        status, exit_code = outcome(
            statuses,
            is_whole=not beginning.scope.ids,
            is_interrupted=is_interrupted,
            is_failed=self._driver.is_failed,
            is_unworkable=bool(self._driver.unworkable),
            is_over_budget=self._driver.is_over_budget,
            is_goal_unmet=judged.is_unmet,
            is_goal_met=self._driver.is_goal_met,
            open_decisions=(*open_ids, *(draft.question for draft in judged.drafts)),
        )
        ended = RunEnded(
            status=status,
            exit_code=exit_code,
            head=self._landing.head,
            waits=self._driver.waits(),
            landed_here=None if is_interrupted else land_here(),
        )
        self._tell_money()
        written = self._tools.emit(ended)
        if not is_interrupted:
            lay_down(self._tools.brain, (*open_ids, *self._asked_of_goal()))
        now = stamp(self._tools.clock.now())
        self._runs.set_run_status(self._record.id, status, now)
        return cast("RunEnded", written)

    def _asked_of_goal(self) -> tuple[str, ...]:
        """Return what is asked about the goal's criteria; assumptions of a kickoff hold nothing up."""
        return tuple(
            one.id
            for one in self._decisions.decisions(task=GOAL)
            if one.answer is None
            and one.run_id == self._record.id
            and one.kind is not DecisionKind.KICKOFF
        )

    def _own(self, beginning: Beginning) -> tuple[TaskId, ...]:
        """Return the run's own tasks, those that came to the manifest meanwhile included."""
        begun = tuple(task for task, _ in beginning.tasks)
        if not beginning.scope.is_whole:
            return begun
        return tuple(dict.fromkeys((*begun, *(task.id for task in self._board.manifest.tasks))))

    def _tell_money(self) -> None:
        """Tell what the run itself has spent: what belongs to no task."""
        purse = self._tools.purse
        usage = purse.spent(self._record.id, GOAL) if purse is not None else Usage()
        if usage != Usage():
            self._tools.emit(MoneySpent(usage=usage))

    def _judge_goal(self, beginning: Beginning, statuses: dict[TaskId, TaskStatus]) -> Judged:
        """Look at the goal where the whole manifest was asked for and all of it is settled."""
        settled = {TaskStatus.DONE, TaskStatus.ABANDONED, TaskStatus.BACKLOG}
        is_settled = settled.issuperset(statuses.values()) or self._driver.is_goal_met
        if not beginning.scope.is_whole or not is_settled:
            return Judged()
        if self._context.goal.text and not self._context.goal.done_when:
            self._tools.emit(Noticed(text=_WITHOUT_CRITERIA, level="info"))
        answers = {
            (decision.question, decision.reason): decision.answer
            for decision in self._decisions.decisions(task=GOAL)
            if decision.answer is not None
        }
        judged = judge_goal(self._anchor, Sha(self._landing.head), self._tools.emit, answers)
        for draft in judged.drafts:
            self._driver.ask(GOAL, draft)
        return judged


def _once(*texts: str) -> tuple[str, ...]:
    """Return the texts without those that a process which died had written already."""
    return tuple(dict.fromkeys(texts))
