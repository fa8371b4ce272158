"""The plan loop: one candidate of one task, from its first step to its end.

PURSUE one todo, OBSERVE its signals, REFLECT on the plan, save, and ask the terminator, again
and again. A step is a transaction: its checkpoint holds the plan and the tree, and an
interrupted step is taken again from the tree before it.

Source: the loop's low-level design §5.1.
"""

from dataclasses import replace
from typing import Final

from loopctl.domain import Axis, DecisionDraft, StopReason, Usage
from loopctl.engine import questions, replan, suspension
from loopctl.engine.phases import Phase, Stopwatch
from loopctl.engine.progress import WORKER_STUCK, observe
from loopctl.engine.pursuit import Step, Watch, pursue
from loopctl.engine.recovery import rescue_notice
from loopctl.engine.spending import spent
from loopctl.engine.telling import Teller
from loopctl.engine.terminator import stop_reason
from loopctl.engine.work import Ended, Tools, Work, todo_text
from loopctl.errors import CancelledError, SandboxError
from loopctl.events import Noticed
from loopctl.plan import Checkpoint, PlanStatus, TodoStatus
from loopctl.ports import Sandbox, Worker
from loopctl.records import Candidate
from loopctl.steps import StepRequest
from loopctl.verdict import Blame, GateResult

FAULT_TRIES: Final = 2
"""How many environment faults a candidate meets before a human is asked."""

PLAN_TRIES: Final = 2
"""How many planning steps without a plan there are before the task is one todo."""

PLANNING: Final = "Break the task down into an ordered list of todos."
"""The sub-goal of a planning step."""

SUMMARY_CHARS: Final = 2000
"""What is kept of a todo's summary; checkpoints must not grow with what workers say."""

_PLAN_STATUS: Final = {
    Axis.GOAL: PlanStatus.COMPLETE,
    Axis.STALL: PlanStatus.STALLED,
    Axis.BUDGET: PlanStatus.BUDGET_EXHAUSTED,
}


class PlanLoop:
    """Runs one candidate; one instance runs one :class:`Work` once."""

    def __init__(self, tools: Tools, worker: Worker, sandbox: Sandbox, work: Work) -> None:
        self._tools = tools
        self._worker = worker
        self._sandbox = sandbox
        self._work = work
        self._candidate = work.session.candidate
        self._tell = Teller(tools.emit, work.task.id, work.session.candidate)
        self._plan = work.plan
        self._iteration = work.session.iteration
        self._tree = work.tree
        self._base_tree = tools.repository.tree_of(sandbox.base)
        self._seen = {self._base_tree, self._tree}
        self._kept = ""
        self._observation = work.observation
        interrupt = work.session.interrupt
        self._resume = work.resume
        self._first_call = interrupt.first_call if interrupt is not None else 0
        self._is_suspended = False
        self._gate: GateResult | None = None
        self._faults = 0
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
            if stop is None and self._tools.is_paused():
                raise CancelledError("the run was asked to pause")
            ended = self._end(stop) if stop is not None else self._step()
        return ended

    def _begin(self) -> Ended | None:
        """Announce a new plan; gate a resumed one with nothing open, since now it may pass."""
        self._keep_tree()
        if self._iteration == 0 and self._plan.todos and self._work.session.interrupt is None:
            self._tell.plan_created(self._plan)
        return self._judge() if self._plan.is_goal_met else None

    def _step(self) -> Ended | None:
        self._iteration += 1
        watch = Stopwatch(self._tools.clock, self._saving_ms)
        if not self._plan.todos:
            ended = self._make_plan(watch)
            if ended is not None:
                self._save()
                return ended
        todo = self._plan.active
        text = todo.text if todo is not None else ""
        with watch.own():
            self._announce(text)
        watch.enter(Phase.PURSUE)
        step = self._pursue("" if self._work.is_relay else text)
        watch.enter(Phase.OBSERVE)
        self._usage += step.usage
        self._said = step.said or self._said
        if step.interrupt is not None:
            return self._suspend(step, watch.until_ms(Phase.OBSERVE))
        with watch.own():
            step, changed = self._keep(step)
        watch.enter(Phase.REFLECT)
        ended = self._reflect(step, watch, changed=changed)
        self._save()
        return ended

    def _make_plan(self, watch: Stopwatch) -> Ended | None:
        """Have the worker plan; after some tries without a plan the task is one todo.

        A planning step belongs to the iteration that it opens: it is no loop, but what it spends
        counts, and a budget that it uses up is the end.
        """
        observation = self._observation
        for _ in range(PLAN_TRIES):
            step = self._pursue(PLANNING, is_planning=True)
            self._usage += step.usage
            if step.interrupt is not None:
                return self._suspend(step, watch.passed_ms())
            self._untold += step.usage
            self._plan = spent(self._plan, step.usage)
            self._first_call = max(self._first_call, step.next_call)
            self._observation = step.observation
            if step.drafts:
                return self._end(StopReason(Axis.DEFER, step.drafts[0].kind), step.drafts)
            if step.proposed is not None and not self._reject(step.proposed):
                self._plan = replan.planned(self._plan, step.proposed)
                break
        else:
            text = todo_text(self._work.task, self._work.option)
            self._plan = replan.planned(self._plan, (text,))
        self._observation = observation
        self._tell.plan_created(self._plan)
        stop = stop_reason(self._plan, self._tools.stall, gate_passed=False)
        return self._end(stop) if stop is not None else None

    def _revise(self, texts: tuple[str, ...]) -> None:
        """Take a re-plan over, or show the worker why it cannot be."""
        if self._reject(texts):
            return
        plan = replan.revised(self._plan, texts)
        if plan is self._plan:
            return
        self._plan = plan
        self._tell.plan_revised(plan, texts)

    def _reject(self, texts: tuple[str, ...]) -> bool:
        why = "relay makes no plans" if self._work.is_relay else replan.rejection(texts)
        if not why:
            return False
        self._observation = f"{self._observation}\nThe plan was not taken over: {why}.".strip()
        self._tell.rejected(why)
        return True

    def _announce(self, text: str) -> None:
        task = self._work.task
        self._tools.brain.update(
            lambda capsule: replace(
                capsule,
                current_step=f"{task.id}, step {self._iteration}: {text}",
                verify_cmd=task.verify_cmd or "",
            )
        )
        self._tell.step_started(self._iteration, text)

    def _pursue(self, text: str, *, is_planning: bool = False) -> Step:
        work = self._work
        resume, self._resume = self._resume, None
        request = StepRequest(
            session_id=work.session.id,
            loop_iteration=self._iteration,
            step_goal=text,
            goal=work.goal,
            task=work.task,
            run_id=work.run_id,
            option=work.option,
            observation=self._observation,
            answer=work.answer,
            budget=self._plan.budget,
            is_planning=is_planning,
            resume=resume,
            first_call=self._first_call,
        )
        watch = Watch(self._candidate, self._tools.emit, self._tools.stall.stuck_steps)
        return pursue(self._worker, request, self._sandbox, watch)

    def _suspend(self, step: Step, ms: int) -> Ended:
        """Put a step by that waits for a person: it has not come to its end, and is no loop yet."""
        before = self._checkpoint()
        step, _ = self._keep(step)
        self._plan = spent(self._plan, step.usage, ms=ms)
        saved = suspension.interrupt(
            (self._work.session.id, self._iteration, self._first_call),
            step,
            before=replace(before, plan=self._plan),
            after=replace(before, plan=self._plan, tree=self._tree),
        )
        self._tools.sessions.save_interrupt(self._work.session.id, self._iteration, saved)
        self._is_suspended = True
        draft = suspension.question(self._work.task, saved)
        return self._end(StopReason(Axis.DEFER, draft.kind), (draft, *step.drafts))

    def _keep(self, step: Step) -> tuple[Step, bool]:
        """Keep the worktree's tree under the candidate's ref; say whether it is a new one.

        A worktree that the step has destroyed, or that git must not touch, is put back to the
        tree before the step, and the worker is told; its files are kept under a ref of their own.
        Where even that cannot be done they are left as they are: the machine is at fault.
        """
        try:
            tree = self._sandbox.snapshot()
        except SandboxError as exc:
            return self._unkept(step, exc), False
        changed = tree not in self._seen
        self._seen.add(tree)
        self._tree = tree
        self._keep_tree()
        return step, changed

    def _unkept(self, step: Step, fault: SandboxError) -> Step:
        """Return the step as one that did not close its todo, its files rescued."""
        cause = "; ".join(str(fault).splitlines())
        self._tools.emit(Noticed(task=self._work.task.id, text=f"a step was not kept: {cause}"))
        step = replace(step, interrupt=suspension.restarting(step.interrupt))
        rescued = self._sandbox.rescue()
        notice = rescue_notice(rescued, self._work.task.id)
        if notice is not None:
            self._tools.emit(notice)
        if not rescued.is_complete:
            said = f"{fault}; its files are left in {rescued.folder}"
            return replace(step, said=said, closed=None, is_environment=True)
        self._sandbox.restore(self._tree)
        said = f"{fault}\nThe worktree was put back to how it was before the step.\n{step.said}"
        progress = replace(step.progress, tool_calls_errored=True)
        return replace(step, said=said, closed=None, progress=progress)

    def _keep_tree(self) -> None:
        """Point the candidate's ref at its tree, unless it keeps it already."""
        if self._tree in {self._kept, self._base_tree}:
            return
        message = f"{self._work.task.id}: step {self._iteration} ({self._candidate})"
        self._tools.repository.keep(self._work.ref, self._tree, self._sandbox.base, message)
        self._kept = self._tree

    def _reflect(self, step: Step, watch: Stopwatch, *, changed: bool) -> Ended | None:
        """Move the plan on by one step; return the end where there is one."""
        is_fault = step.is_environment
        progress = step.signals(self._tree, changed=changed)
        told = replace(step, usage=step.usage + self._untold)
        self._untold = Usage()
        self._tell.step_finished(self._iteration, told, progress, self._tree, watch)
        self._spend(step, watch.until_ms(Phase.OBSERVE), is_fault=is_fault)
        self._observation = step.observation
        if step.drafts:
            return self._end(StopReason(Axis.DEFER, step.drafts[0].kind), step.drafts)
        if step.is_stuck:
            return self._end(StopReason(Axis.STALL, WORKER_STUCK))
        if is_fault:
            return self._fault(questions.environment(self._work.task, f"{step.said}."))
        if step.closed is not None:
            self._close(step.closed)
        if step.proposed is not None:
            self._revise(step.proposed)
        is_judged = step.closed is not None and self._plan.is_goal_met
        ended = self._judge() if is_judged else None
        if self._gate_excuses():
            return ended
        reopened = is_judged and not self._plan.is_goal_met
        progress = replace(
            progress,
            todo_completed=progress.todo_completed and not reopened,
            gate_signature=self._gate.signature if self._gate is not None and reopened else "",
        )
        self._plan = observe(self._plan, progress, self._tools.stall)
        return ended

    def _close(self, summary: str) -> None:
        todo = self._plan.active
        if todo is None:
            return
        summary = summary[:SUMMARY_CHARS]
        self._plan = self._plan.with_todo(
            self._plan.cursor, status=TodoStatus.DONE, summary=summary
        )
        self._tell.todo_closed(todo.text, summary)

    def _judge(self) -> Ended | None:
        """Ask the gate; on a failure open the last todo again with the evidence."""
        while True:
            self._gate = self._ask_gate()
            if self._gate.is_passed:
                stop = stop_reason(self._plan, self._tools.stall, gate_passed=True)
                return self._end(stop) if stop is not None else None
            if self._gate.is_unverified:
                draft = questions.how_to_verify(self._work.task)
                return self._end(StopReason(Axis.DEFER, draft.kind), (draft,))
            if not self._gate_excuses():
                break
            ended = self._fault(questions.environment_of(self._work.task, self._gate))
            if ended is not None:
                return ended
        self._reopen()
        return None

    def _ask_gate(self) -> GateResult:
        candidate = Candidate(
            task=self._work.task,
            name=self._candidate,
            base=self._sandbox.base,
            tree=self._tree,
            head=self._sandbox.base,
            left_out=self._sandbox.left_out() if self._tree == self._base_tree else "",
        )
        began = self._tools.clock.monotonic()
        result = self._tools.gate.judge(candidate)
        ms = int((self._tools.clock.monotonic() - began) * 1000)
        self._plan = spent(self._plan, ms=ms)
        self._tell.gate_finished(result)
        return result

    def _gate_excuses(self) -> bool:
        """The last gate run says nothing about the worker: the machine or the test is unsteady."""
        return self._gate is not None and self._gate.blame in {Blame.ENVIRONMENT, Blame.FLAKY}

    def _reopen(self) -> None:
        last = len(self._plan.todos) - 1
        todo = self._plan.todos[last]
        self._plan = self._plan.with_todo(last, status=TodoStatus.ACTIVE, summary="")
        if self._gate is not None:
            self._observation = self._tools.describe(self._gate)
        self._tell.todo_reopened(todo.text)

    def _fault(self, draft: DecisionDraft) -> Ended | None:
        """Count an environment fault; a human is asked when it lasts."""
        self._faults += 1
        if self._faults < FAULT_TRIES:
            return None
        return self._end(StopReason(Axis.DEFER, draft.kind), (draft,))

    def _spend(self, step: Step, ms: int, *, is_fault: bool) -> None:
        todo = self._plan.active
        if todo is not None:
            self._plan = self._plan.with_todo(self._plan.cursor, attempts=todo.attempts + 1)
        self._plan = spent(self._plan, step.usage, ms=ms, loops=0 if is_fault else 1)

    def _end(self, stop: StopReason, drafts: tuple[DecisionDraft, ...] = ()) -> Ended:
        if stop.axis is Axis.BUDGET:
            drafts = (questions.budget(self._work.task, stop.reason, self._plan.budget),)
        status = _PLAN_STATUS.get(stop.axis, PlanStatus.ACTIVE)
        self._plan = replace(self._plan, status=status, stop=stop)
        summaries = [todo.summary for todo in self._plan.todos if todo.summary]
        return Ended(
            candidate=self._candidate,
            stop=stop,
            tree=self._tree,
            base=self._sandbox.base,
            plan=self._plan,
            ref=self._work.ref if self._tree != self._base_tree else "",
            gate=self._gate,
            drafts=drafts,
            result="\n".join(summaries) or self._said,
            usage=self._usage,
        )

    def _save(self) -> None:
        """Save the step at its end; one that was put by has its own checkpoint."""
        if self._is_suspended:
            return
        saving, session_id = Stopwatch(self._tools.clock), self._work.session.id
        with saving.own():
            self._tools.sessions.save_checkpoint(session_id, self._iteration, self._checkpoint())
        self._saving_ms = saving.overhead_ms
        self._first_call = 0

    def _checkpoint(self) -> Checkpoint:
        return Checkpoint(
            plan=self._plan,
            tree=self._tree,
            base=self._sandbox.base,
            observation=self._observation,
        )
