"""The plan loop: one candidate of one task, from its first step to its end.

PURSUE one todo, OBSERVE its signals, REFLECT on the plan, save, and ask the terminator, again
and again. A step is a transaction: its checkpoint holds the plan and the tree, and an
interrupted step is taken again from the tree before it.

Source: the loop's low-level design §5.1.
"""

from dataclasses import replace
from typing import Final

from loopctl.domain import APPROVED, Axis, DecisionDraft, StopReason, Usage
from loopctl.engine import forks, questions, replan, stages, suspension
from loopctl.engine.asking import asked, clarified, raised_by, refusal
from loopctl.engine.issuing import Issuer, planning
from loopctl.engine.judging import Judging, evidence
from loopctl.engine.phases import Phase, Stopwatch
from loopctl.engine.progress import WORKER_STUCK, observe
from loopctl.engine.pursuit import Step
from loopctl.engine.sorting import Sorter
from loopctl.engine.spending import spent, stepped
from loopctl.engine.steady import Steady
from loopctl.engine.telling import Teller
from loopctl.engine.terminator import status_at, stop_reason
from loopctl.engine.thread import Thread
from loopctl.engine.trees import Trees
from loopctl.engine.work import FORKED, Ended, Tools, Work, todo_text
from loopctl.plan import Checkpoint, StepProgress, TodoStatus
from loopctl.ports import Sandbox, Worker
from loopctl.steps import BudgetRefused
from loopctl.verdict import GateResult

PLAN_TRIES: Final = 2
"""How many planning steps without a plan there are before the task is one todo."""

SUMMARY_CHARS: Final = 2000
"""What is kept of a todo's summary; checkpoints must not grow with what workers say."""


class PlanLoop:
    """Runs one candidate; one instance runs one :class:`Work` once."""

    def __init__(
        self, tools: Tools, worker: Worker, sandbox: Sandbox, work: Work, width: int = forks.LEAST
    ) -> None:
        self._tools = tools
        self._sandbox = sandbox
        self._work = work
        self._candidate = work.session.candidate
        self._tell = Teller(tools.emit, work.task.id, work.session.candidate)
        self._sorter = Sorter(tools, work, width)
        self._issuer = Issuer(tools, worker, sandbox, work)
        self._trees = Trees(tools, sandbox, work)
        self._steady = Steady(tools, self._issuer, self._trees, work)
        self._judging = Judging(tools, sandbox, work, self._trees, self._tell)
        self._thread = Thread(tools.brain, work.task)
        self._plan = work.plan
        self._is_staged = stages.is_staged(work, worker)
        self._iteration = work.session.iteration
        self._observation = work.observation
        self._is_unfinished = False
        self._usage = Usage()
        self._untold = Usage()
        self._said = ""
        self._saving_ms = 0.0

    def run(self) -> Ended:
        """Return how the candidate ended; its last checkpoint is saved.

        Raises:
            SandboxError: The sandbox is gone and cannot be made again.
            CancelledError: The run was asked to stop, or to pause; the last checkpoint stands.
        """
        ended = self._begin()
        while ended is None:
            stop = stop_reason(self._plan, self._tools.stall, gate_passed=False)
            stop = stop or self._tools.run_budget.stop
            if stop is not None:
                return self._end(stop)
            self._tools.heed_pause()
            ended = self._withheld() or self._step()
        return ended

    def _withheld(self) -> Ended | None:
        """Return the end where the next step needs consent that nobody gives now."""
        task, permission = self._work.task, self._tools.permission
        draft = permission.needed(task) if permission is not None else None
        if permission is None or draft is None:
            return None
        decision = permission.ask(task, draft)
        if decision is not None and decision.answer == APPROVED:
            return None
        drafts = (draft,) if decision is None else ()
        return self._end(StopReason(Axis.DEFER, draft.kind), drafts)

    def _begin(self) -> Ended | None:
        """Announce a new plan; gate a resumed one with nothing open, since now it may pass."""
        self._trees.hold(self._iteration)
        if self._iteration == 0 and self._plan.todos and self._work.session.interrupt is None:
            self._tell.plan_created(self._plan)
        if not self._plan.is_goal_met:
            return None
        return self._passed() if self._judging.recall() else self._judge()

    def _step(self) -> Ended | None:
        self._iteration += 1
        watch = Stopwatch(self._tools.clock, self._saving_ms)
        todo = self._plan.active
        with watch.own():
            text = todo.text if todo is not None else planning(self._work.task)
            self._thread.write(self._iteration, text)
            self._issuer.tend(self._iteration, self._plan.budget)
        if not self._plan.todos:
            ended = self._make_plan(watch)
            if ended is not None:
                self._save()
            if ended is not None or not self._plan.todos:
                return ended
        todo = self._plan.active
        with watch.own():
            text = todo.text if todo is not None else ""
            self._thread.write(self._iteration, text)
            self._tell.step_started(self._iteration, text)
        watch.enter(Phase.PURSUE)
        step = self._issue()
        watch.enter(Phase.OBSERVE)
        if step.is_cut:
            return self._give_up(step)
        self._usage += step.usage
        self._said = step.said or self._said
        if step.interrupt is not None:
            return self._suspend(step, watch.until_ms(Phase.OBSERVE))
        with watch.own():
            step, changed = self._trees.keep(step, self._iteration)
        # Where its files could not be kept, that is what a reader has to know of it.
        self._said = step.said or self._said
        watch.enter(Phase.REFLECT)
        ended = self._reflect(step, watch, changed=changed)
        self._save()
        return ended

    def _issue(self, *, is_planning: bool = False) -> Step:
        return self._steady.issue(
            self._iteration, self._plan, self._observation, is_planning=is_planning
        )

    def _give_up(self, step: Step) -> Ended:
        """Ask a human about a step that was cut short: it stays begun, and is no loop yet."""
        self._is_unfinished = True
        draft = questions.environment(self._work.task, f"{step.said.rstrip('.')}.")
        return self._end(StopReason(Axis.DEFER, draft.kind), (draft,))

    def _make_plan(self, watch: Stopwatch) -> Ended | None:
        """Have the worker plan; after some tries without a plan the task is one todo.

        A planning step belongs to the iteration that it opens: it is no loop, but what it spends
        counts, and a budget that it uses up is the end.
        """
        observation = self._observation
        for _ in range(PLAN_TRIES):
            step = self._issue(is_planning=True)
            if step.is_cut:
                return self._give_up(step)
            self._usage += step.usage
            if step.interrupt is not None:
                return self._suspend(step, watch.passed_ms())
            self._untold += step.usage
            self._plan = spent(self._plan, step.usage)
            self._plan, step = self._sorter.sort(
                self._plan, step, self._iteration, is_planning=True
            )
            self._issuer.planned(self._iteration, step)
            self._observation = step.observation
            ended = self._unplanned(step)
            if ended is not None:
                return ended
            if step.proposed is not None and not self._reject_plan(step.proposed):
                self._plan = replan.planned(self._plan, step.proposed)
                break
        else:
            text = todo_text(self._work.task, self._work.option)
            self._plan = replan.planned(self._plan, (text,))
        self._observation = observation
        self._tell.plan_created(self._plan)
        stop = stop_reason(self._plan, self._tools.stall, gate_passed=False)
        return self._end(stop) if stop is not None else None

    def _unplanned(self, step: Step) -> Ended | None:
        """Return the end where a planning step is one: a question, a fault that lasts, no money."""
        if step.drafts:
            return self._end(StopReason(Axis.DEFER, step.drafts[0].kind), step.drafts)
        if step.is_environment:
            return self._fault(questions.environment(self._work.task, f"{step.said}."))
        if step.refused is not None and step.proposed is None:
            return self._refuse(step.refused)
        return None

    def _revise(self, texts: tuple[str, ...]) -> None:
        """Take a re-plan over, or show the worker why it cannot be."""
        if self._reject_plan(texts):
            return
        plan = replan.revised(self._plan, texts)
        if plan is self._plan:
            return
        self._plan = plan
        self._tell.plan_revised(plan, texts)

    def _reject_plan(self, texts: tuple[str, ...]) -> bool:
        why = "relay makes no plans" if self._work.is_relay else replan.rejection(texts)
        return self._reject("The plan was not taken over", why)

    def _reject(self, what: str, why: str) -> bool:
        if why:
            self._observation = f"{self._observation}\n{what}: {why}.".strip()
            self._tell.rejected(why)
        return bool(why)

    def _suspend(self, step: Step, ms: int) -> Ended | None:
        """Put a step by that waits for a person; where somebody decides now, it goes on next."""
        before = self._checkpoint()
        step, _ = self._trees.keep(step, self._iteration)
        self._plan = spent(self._plan, step.usage, ms=ms)
        issuer, session_id = self._issuer, self._work.session.id
        saved = suspension.interrupt(
            (session_id, self._iteration, issuer.first_call, issuer.first_reply),
            step,
            before=replace(before, plan=self._plan),
            after=replace(before, plan=self._plan, tree=self._trees.tree),
        )
        self._tools.sessions.save_interrupt(session_id, self._iteration, saved)
        draft = suspension.question(self._work.task, saved)
        permission = self._tools.permission
        if permission is not None and saved.blob and not step.drafts:
            decision = permission.ask(self._work.task, draft)
            if decision is not None:
                issuer.take_up(suspension.resume(saved, decision, self._tools.calls))
                self._iteration -= 1
                return None
        self._is_unfinished = True
        return self._end(StopReason(Axis.DEFER, draft.kind), (draft, *step.drafts))

    def _reflect(self, step: Step, watch: Stopwatch, *, changed: bool) -> Ended | None:
        """Move the plan on by one step; return the end where there is one."""
        progress = step.signals(self._trees.tree, changed=changed)
        told = replace(step, usage=step.usage + self._untold)
        self._untold = Usage()
        self._tell.step_finished(self._iteration, told, progress, self._trees.tree, watch)
        self._plan = stepped(self._plan, step, watch.until_ms(Phase.OBSERVE))
        self._plan, step = self._sorter.sort(self._plan, step, self._iteration)
        if not (step.is_environment or step.is_void):
            self._observation = step.observation
            self._issuer.over(self._iteration, step)
        if step.drafts:
            return self._end(StopReason(Axis.DEFER, step.drafts[0].kind), step.drafts)
        if step.is_stuck:
            return self._end(StopReason(Axis.STALL, WORKER_STUCK))
        if step.is_environment:
            return self._fault(questions.environment(self._work.task, f"{step.said}."))
        if step.refused is not None and step.is_void:
            return self._refuse(step.refused)
        if self._plan.forks.tried is not None:
            return self._fork(progress)
        is_closed = step.closed is not None and self._close(step.closed)
        if step.proposed is not None:
            self._revise(step.proposed)
        is_judged, count = is_closed and self._plan.is_goal_met, len(self._plan.todos)
        ended = self._judge() if is_judged else None
        if ended is None and step.refused is not None:
            ended = self._refuse(step.refused)
        if self._judging.is_excused:
            return ended
        reopened = is_judged and not self._plan.is_goal_met and count == len(self._plan.todos)
        gate = self._judging.last
        progress = replace(
            progress,
            todo_completed=is_closed and not reopened,
            gate_signature=gate.signature if gate is not None and reopened else "",
        )
        self._plan = observe(self._plan, progress, self._tools.stall)
        return ended

    def _fork(self, progress: StepProgress) -> Ended:
        """Let go of the worktree, so that the options of a fork can be tried."""
        self._plan = observe(self._plan, replace(progress, todo_completed=False), self._tools.stall)
        return self._ended(FORKED)

    def _close(self, summary: str) -> bool:
        todo = self._plan.active
        why = stages.unstated(todo, summary) if self._is_staged else ""
        if todo is None or self._reject("The todo was not closed", why):
            return False
        summary = summary[:SUMMARY_CHARS]
        self._plan = self._plan.with_todo(
            self._plan.cursor, status=TodoStatus.DONE, summary=summary
        )
        self._tell.todo_closed(todo.text, summary)
        return True

    def _refuse(self, refused: BudgetRefused) -> Ended:
        """End where a model call did not fit."""
        return self._end(*refusal(refused, self._work, self._plan.budget, self._tools))

    def _judge(self) -> Ended | None:
        """Ask the gate; on a failure the plan goes on from the evidence."""
        while True:
            is_draft = self._is_staged and stages.is_draft(self._plan)
            gate, ms = self._judging.ask(self._work.task, is_draft=is_draft)
            self._plan, self._usage = spent(self._plan, gate.usage, ms=ms), self._usage + gate.usage
            if (refused := gate.checks[-1].refused) is not None:
                return self._refuse(BudgetRefused(refused.cap, refused.reason, refused.needed))
            if gate.is_passed or (self._work.is_partial and forks.holds(gate)):
                return self._passed()
            draft = raised_by(gate, self._work.task)
            if draft is not None:
                return self._end(StopReason(Axis.DEFER, draft.kind), (draft,))
            if not self._judging.is_excused:
                return self._go_on(gate)
            ended = self._fault(questions.environment_of(self._work.task, gate))
            if ended is not None:
                return ended

    def _passed(self) -> Ended | None:
        stop = stop_reason(self._plan, self._tools.stall, gate_passed=True)
        return self._end(stop) if stop is not None else None

    def _go_on(self, gate: GateResult) -> Ended | None:
        """Take the todo that follows from what a judge of prose says; else open the last again."""
        plan = stages.after(self._plan, self._work.task, gate)
        if plan is not None:
            self._plan, self._observation = plan, self._tools.describe(gate)
            self._tell.todo_added(plan.todos[-1].text, gate.checks[-1].reason)
        elif not stages.is_undecided(gate):
            self._reopen(gate)
        else:
            draft = questions.alignment(self._work.task, gate.checks[-1])
            work, drafts = clarified(self._work, draft, self._tools.permission)
            if work is self._work:
                return self._end(StopReason(Axis.DEFER, draft.kind), drafts)
            self._work = work
            self._issuer.hear(work)
            return self._go_on(gate)
        return None

    def _reopen(self, gate: GateResult) -> None:
        last = len(self._plan.todos) - 1
        todo = self._plan.todos[last]
        self._plan = self._plan.with_todo(last, status=TodoStatus.ACTIVE, summary="")
        self._observation = self._tools.describe(gate)
        self._tell.todo_reopened(todo.text)

    def _fault(self, draft: DecisionDraft) -> Ended | None:
        """Count an environment fault; a human is asked when it lasts."""
        if not self._steady.is_one_too_many():
            return None
        return self._end(StopReason(Axis.DEFER, draft.kind), (draft,))

    def _end(self, stop: StopReason, drafts: tuple[DecisionDraft, ...] = ()) -> Ended:
        if not drafts:
            stop, drafts = asked(stop, self._work.task, self._plan.budget, self._judging.last)
        self._plan = replace(self._plan, status=status_at(stop), stop=stop)
        return self._ended(stop, drafts)

    def _ended(self, stop: StopReason, drafts: tuple[DecisionDraft, ...] = ()) -> Ended:
        return Ended(
            candidate=self._candidate,
            stop=stop,
            tree=self._trees.tree,
            base=self._sandbox.base,
            plan=self._plan,
            ref=self._trees.ref,
            gate=self._judging.last,
            drafts=drafts,
            result=stages.result(self._plan) or self._said,
            usage=self._usage,
        )

    def _save(self) -> None:
        """Save the step at its end; one that goes on later has its own checkpoint, or none."""
        if self._is_unfinished:
            return
        saving, session_id = Stopwatch(self._tools.clock), self._work.session.id
        with saving.own():
            self._tools.sessions.save_checkpoint(session_id, self._iteration, self._checkpoint())
        self._saving_ms = saving.overhead_ms
        self._issuer.saved()

    def _checkpoint(self) -> Checkpoint:
        is_one_of_several = self._work.trial is not None or self._work.option is not None
        is_kept = is_one_of_several and self._plan.stop is not None
        gate = self._judging.last if is_kept else None
        return Checkpoint(
            plan=self._plan,
            tree=self._trees.tree,
            base=self._sandbox.base,
            observation=self._observation,
            past=self._issuer.past,
            gate=evidence(gate) if gate is not None else "",
        )
