"""The driver: the frontier loop, and the one thread that owns statuses, landings and the end.

claim what is ready → one thread a task → land what passed, put aside what did not → again,
until nothing is ready and nothing runs. A task that defers, stalls or breaks stops no other.
"""

import contextlib
import threading
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import FIRST_COMPLETED, Future, ThreadPoolExecutor, wait
from dataclasses import replace
from typing import Final

from loopctl.disk import describe, is_machines_fault
from loopctl.domain import (
    GOAL,
    Axis,
    Decision,
    DecisionDraft,
    Manifest,
    Sha,
    StopReason,
    Task,
    TaskId,
    TaskStatus,
    Usage,
    Wait,
)
from loopctl.engine.answers import announce, as_answered, freed, overturned, reach
from loopctl.engine.board import Board
from loopctl.engine.landing import Landing, Returned
from loopctl.engine.late import LateAnswers
from loopctl.engine.raising import put_question
from loopctl.engine.refill import Refill
from loopctl.engine.standing import ASKING
from loopctl.engine.taskrun import RunContext, Start, TaskRun
from loopctl.engine.terminator import is_of_run
from loopctl.engine.thread import write_next
from loopctl.engine.transitions import Signal
from loopctl.engine.work import Ended
from loopctl.errors import CancelledError, LandingRefusedError, LoopctlError
from loopctl.events import MoneySpent, Noticed, TaskClaimed, TaskStopped
from loopctl.ports import Frontier
from loopctl.storeports import DecisionStore

_SIGNALS: Final = {
    Axis.STALL: Signal.STALLED,
    Axis.GATE: Signal.STALLED,
    Axis.BUDGET: Signal.OVER_BUDGET,
    Axis.DEFER: Signal.DEFERRED,
    Axis.ERROR: Signal.BROKEN,
}


class Driver:
    """Drives the tasks in scope until nothing can run.

    Args:
        make_frontier: Builds the frontier of a manifest, for the scope of this drive.
        is_goal_met: Says after a landing whether the goal is met; then no further task is begun.
        refill: Judges the tasks that workers propose; ``None`` takes none.
        late: Answers that come while the drive goes on; ``None`` looks for none.
        workable: Says why a task cannot be worked on here; ``None`` where it can.
        cancel: Set when the user asks the run to stop.
        report_fault: Writes down a bug of ours, and returns where.
    """

    def __init__(
        self,
        context: RunContext,
        board: Board,
        landing: Landing,
        decisions: DecisionStore,
        *,
        make_frontier: Callable[[Manifest], Frontier],
        is_goal_met: Callable[[Sha], bool] = lambda _head: False,
        refill: Refill | None = None,
        late: LateAnswers | None = None,
        workable: Callable[[Task], str | None],
        cancel: threading.Event,
        report_fault: Callable[[BaseException], str],
    ) -> None:
        self._context = context
        self._tools = context.tools
        self._board = board
        self._landing = landing
        self._decisions = decisions
        self._make_frontier = make_frontier
        self._look_at_goal = is_goal_met
        self._refill = refill
        self._late = late
        self._workable = workable
        self._cancel = cancel
        self._report_fault = report_fault
        self._frontier = make_frontier(board.manifest)
        self._running: dict[Future[Ended], Task] = {}
        self._moved: set[TaskId] = set()
        self._unworkable: dict[TaskId, str] = {}
        self._reasons: dict[TaskId, str] = {}
        self._again: dict[TaskId, Decision] = {}
        self.is_goal_met = False
        """The goal's criteria are met; what was not begun is left."""
        self.is_failed = False
        self.is_over_budget = False
        """Tasks are left to be done because the run's own budget is spent."""

    @property
    def unworkable(self) -> dict[TaskId, str]:
        """Tasks that came to their turn and that no configured worker can do, with the reason."""
        return dict(self._unworkable)

    def drive(self) -> None:
        """Work until nothing is ready and nothing runs, or until the user asks to stop or pause."""
        self._build_frontier()
        self._judge_proposals()
        jobs = self._context.settings.loop.jobs
        with ThreadPoolExecutor(jobs, thread_name_prefix="task") as pool:
            try:
                self._work(pool, jobs)
            except BaseException:
                # Nobody is left to settle what still runs.
                self._cancel.set()
                raise
        self._board.close()

    def _work(self, pool: ThreadPoolExecutor, jobs: int) -> None:
        while True:
            self._follow_edits()
            self._take_answers()
            self._claim(pool, jobs - len(self._running))
            if not self._running:
                return
            done, _ = wait(self._running, return_when=FIRST_COMPLETED)
            for future in done:
                self._settle(pool, self._running.pop(future), future)

    def waits(self) -> tuple[Wait, ...]:
        """Return the one thing that each task left waits for."""
        return tuple(
            Wait(entry.task, self._known_reason(entry.task) or self._spared(entry))
            for entry in self._frontier.waits()
        )

    def _spared(self, entry: Wait) -> str:
        is_spared = self.is_goal_met and self._board.status(entry.task) is TaskStatus.TODO
        return "nothing: the goal is met without it" if is_spared else entry.reason

    def _known_reason(self, task: TaskId) -> str:
        """Return what this drive knows better than the manifest; empty where it does not."""
        if task in self._reasons:
            return self._reasons[task]
        if task not in self._board or self._board.status(task) is not TaskStatus.NEEDS_HUMAN:
            return ""
        asked = self._decisions.decisions(task=task)
        if asked and all(decision.answer is not None for decision in asked):
            return "its question was rejected: name it to run it again"
        return ""

    def _follow_edits(self) -> None:
        if self._board.refresh():
            self._build_frontier()

    def _take_answers(self) -> None:
        """Follow what another process was answered since this drive last looked."""
        fresh = self._late.fresh(self._is_asking) if self._late is not None else ()
        if self._late is None or not fresh:
            return
        manifest = self._board.manifest
        over = overturned(fresh, self._late.events(), manifest)
        free = freed(fresh, self._decisions.decisions())
        self.follow(fresh, free, over)
        self._late.widen((*reach(manifest, free).ids, *over))
        self._build_frontier()

    def _is_asking(self, decision: Decision) -> bool:
        task = TaskId(decision.task)
        return task == GOAL or task not in self._board or self._board.status(task) in ASKING

    def follow(
        self,
        answered: Sequence[Decision],
        free: Sequence[TaskId],
        over: Mapping[TaskId, Decision],
    ) -> None:
        """Tell answers, and let the tasks go on that they set free or take the ground from.

        Args:
            answered: With their answers.
            free: Tasks that wait for no other answer: they go on from what was kept.
            over: Tasks that begin again from the head, with the answer that contradicts them.
        """
        for task, decision in over.items():
            if task in self._board:
                self._overturn(task, decision)
        if answered:
            announce(answered, self._tools.emit, self._tools.brain)
        for task, status in self._board.statuses(free).items():
            if status in ASKING:
                self._signal(task, Signal.ANSWERED)

    def _overturn(self, task: TaskId, decision: Decision) -> None:
        """Mark a task as to be done again whose ground an answer has taken away."""
        self.is_goal_met = False
        self._again[task] = decision
        status = self._board.status(task)
        if status in {TaskStatus.TODO, TaskStatus.BACKLOG}:
            return
        text = (
            f"to be done again: the answer to {decision.id} is {decision.answer!r}, and it was "
            f"built on {decision.best_guess or 'something else'!r}"
        )
        self._tools.emit(Noticed(task=task, text=text, level="info"))
        if status in {TaskStatus.DONE, TaskStatus.STUCK}:
            self._signal(task, Signal.REOPENED)
        elif status in ASKING:
            self._signal(task, Signal.ANSWERED)

    def _signal(self, task: TaskId, signal: Signal) -> None:
        self._board.signal(task, signal)
        self._moved.add(task)
        self._reasons.pop(task, None)

    def _build_frontier(self) -> None:
        """Build the frontier of the manifest as it was read, then tell it what has moved since."""
        self._frontier = self._make_frontier(self._board.manifest)
        read = {task.id: task.status for task in self._board.manifest.tasks}
        for task, status in self._board.statuses(read).items():
            if task in self._moved or status is not read[task]:
                self._mark(task, status)

    def _claim(self, pool: ThreadPoolExecutor, places: int) -> None:
        if self.is_goal_met:
            return
        for task in self._frontier.ready():
            if self._tools.run_budget.stop is not None:
                self._leave(task)
                continue
            if places <= 0 or self._cancel.is_set() or self._tools.is_paused():
                return
            reason = self._workable(task)
            if reason is not None:
                self._set_aside(task, reason)
                continue
            answers = self._answers(task.id)
            self._tools.emit(
                TaskClaimed(
                    task=task.id,
                    title=task.title,
                    worker=task.worker or self._context.settings.loop.worker,
                    model=task.model,
                    resumed=bool(answers),
                )
            )
            self._move(task.id, Signal.CLAIMED)
            over = self._again.pop(task.id, None)
            if over is not None:
                words = f"{over.question} {over.answer}"
                answers = (*answers, replace(over, answer=words))
            start = Start(self._landing.head, answers, is_anew=over is not None)
            self._submit(pool, task, start)
            places -= 1

    def _leave(self, task: Task) -> None:
        """Leave a task for another run: this one has nothing left to spend."""
        self.is_over_budget = True
        self._reasons[task.id] = "the run's budget is spent; a new run begins with its own"

    def _set_aside(self, task: Task, reason: str) -> None:
        self._unworkable[task.id] = self._reasons[task.id] = reason
        self._frontier.mark(task.id, TaskStatus.BLOCKED)
        self._tools.emit(Noticed(task=task.id, text=reason))

    def _submit(self, pool: ThreadPoolExecutor, task: Task, start: Start) -> None:
        self._running[pool.submit(TaskRun(self._context, task, start).run)] = task

    def _settle(self, pool: ThreadPoolExecutor, task: Task, future: Future[Ended]) -> None:
        fault = future.exception()
        if fault is not None:
            self._break(task, fault)
        else:
            ended = future.result()
            if task.id in self._again:
                # An answer has taken its ground away while it was worked on.
                self._move(task.id, Signal.RELEASED)
            elif ended.is_passed:
                self._land(pool, task, ended)
            else:
                self._put_aside(task, ended)
        self._tell_money(task)
        self._judge_proposals()

    def _judge_proposals(self) -> None:
        if self._refill is None:
            return
        with contextlib.suppress(CancelledError):
            judged = self._refill.judge(lambda: self._board.manifest, self._board.extend)
            for event in judged:
                self._tools.emit(event)
            if any(event.added for event in judged):
                self._build_frontier()

    def _land(self, pool: ThreadPoolExecutor, task: Task, ended: Ended) -> None:
        try:
            landed = self._landing.land(as_answered(task, self._answers(task.id)), ended)
        except LoopctlError as exc:
            self._break(task, exc, ended)
            return
        if isinstance(landed, Returned):
            start = Start(
                head=self._landing.head,
                answers=self._answers(task.id),
                returned=ended.candidate,
                tree=landed.tree,
                observation=landed.observation,
                is_to_be_asked=landed.is_to_be_asked,
            )
            self._submit(pool, task, start)
            return
        # What cannot be written from here on ends the drive, and the next one asks git.
        self._tools.emit(landed)
        self._move(task.id, Signal.LANDED)
        self._stopped(task, ended)
        words = f"{task.id} has landed; look whether the goal is met, then the next task"
        write_next(self._tools.brain, "goal", words)
        # Who has asked to stop is heeded by the loop around this.
        with contextlib.suppress(CancelledError):
            self.is_goal_met = self._look_at_goal(Sha(self._landing.head))

    def _put_aside(self, task: Task, ended: Ended) -> None:
        if is_of_run(ended.stop):
            self._leave(task)
            self._move(task.id, Signal.RELEASED)
            self._stopped(task, ended)
            return
        for draft in ended.drafts:
            self.ask(task.id, draft)
        self._move(task.id, _SIGNALS[ended.stop.axis])
        self._stopped(task, ended)

    def ask(self, task: str, draft: DecisionDraft) -> Decision:
        """Put a question to the human: into the store, the events and the capsule."""
        return put_question(self._context.run_id, task, draft, self._decisions, self._tools)

    def _break(self, task: Task, fault: BaseException, ended: Ended | None = None) -> None:
        """Put a task aside whose machinery broke, or give it back where the user has stopped."""
        if isinstance(fault, CancelledError):
            self._move(task.id, Signal.RELEASED)
            return
        if isinstance(fault, LoopctlError):
            reason = str(fault)
        elif is_machines_fault(fault):
            reason = describe(fault)
        else:
            self.is_failed = True
            reason = f"an internal fault of loop; see {self._report_fault(fault)}"
        stop = StopReason(
            Axis.GATE if isinstance(fault, LandingRefusedError) else Axis.ERROR, reason
        )
        self._tools.emit(Noticed(task=task.id, text=reason))
        self._move(task.id, Signal.BROKEN)
        self._reasons[task.id] = f"blocked: {reason}; name it to run it again"
        if ended is not None:
            self._stopped(task, replace(ended, stop=stop))
        else:
            self._tools.emit(TaskStopped(task=task.id, axis=stop.axis, reason=reason, steps=0))

    def _stopped(self, task: Task, ended: Ended) -> None:
        self._tools.emit(
            TaskStopped(
                task=task.id,
                axis=ended.stop.axis,
                reason=ended.stop.reason,
                steps=ended.plan.budget.loops_used,
                replans=ended.plan.replans,
                result=ended.result,
                ref=ended.ref,
                usage=ended.usage,
            )
        )

    def _tell_money(self, task: Task) -> None:
        """Tell what the task has spent so far, with all that no step of its own shows."""
        purse = self._tools.purse
        usage = purse.spent(self._context.run_id, task.id) if purse is not None else Usage()
        if usage != Usage():
            self._tools.emit(MoneySpent(task=task.id, usage=usage))

    def _move(self, task: TaskId, signal: Signal) -> None:
        status = self._board.signal(task, signal)
        self._moved.add(task)
        self._mark(task, status)

    def _mark(self, task: TaskId, status: TaskStatus) -> None:
        if task in self._board:
            self._frontier.mark(task, status)

    def _answers(self, task: TaskId) -> tuple[Decision, ...]:
        return tuple(
            decision for decision in self._decisions.decisions(task=task) if decision.is_going_on
        )
