"""The plan loop: one candidate of one task, from its first step to its end.

PURSUE one todo, OBSERVE its signals, REFLECT on the plan, save, and ask the terminator, again
and again. A step is a transaction: its checkpoint holds the plan and the tree, and an
interrupted step is taken again from the tree before it.

Source: the loop's low-level design §5.1.
"""

from dataclasses import replace
from typing import Final

from loopctl.domain import Axis, DecisionDraft, StopReason, Usage
from loopctl.engine import questions
from loopctl.engine.phases import Phase, Stopwatch
from loopctl.engine.progress import observe
from loopctl.engine.pursuit import Step, pursue
from loopctl.engine.terminator import stop_reason
from loopctl.engine.work import Ended, Tools, Work
from loopctl.errors import CancelledError, SandboxError
from loopctl.events import (
    GateFinished,
    PlanCreated,
    StepFinished,
    StepStarted,
    TodoClosed,
    TodoReopened,
)
from loopctl.plan import Checkpoint, PlanStatus, StepProgress, TodoStatus
from loopctl.ports import Sandbox, Worker
from loopctl.records import Candidate
from loopctl.steps import StepRequest, WorkerProgress
from loopctl.verdict import Blame, GateResult

FAULT_TRIES: Final = 2
"""How many environment faults a candidate meets before a human is asked."""

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
        self._plan = work.plan
        self._iteration = work.session.iteration
        self._tree = work.tree
        self._base_tree = tools.repository.tree_of(sandbox.base)
        self._seen = {self._base_tree, self._tree}
        self._kept = ""
        self._observation = work.observation
        self._gate: GateResult | None = None
        self._faults = 0
        self._usage = Usage()
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
        if self._iteration == 0:
            texts = tuple(todo.text for todo in self._plan.todos)
            self._tools.emit(
                PlanCreated(task=self._work.task.id, candidate=self._candidate, todos=texts)
            )
        return self._judge() if self._plan.is_goal_met else None

    def _step(self) -> Ended | None:
        self._iteration += 1
        todo = self._plan.active
        text = todo.text if todo is not None else ""
        watch = Stopwatch(self._tools.clock)
        self._announce(text)
        watch.enter(Phase.PURSUE)
        step = self._pursue(text)
        watch.enter(Phase.OBSERVE)
        self._usage += step.usage
        self._said = step.said or self._said
        step, changed = self._keep(step)
        watch.enter(Phase.REFLECT)
        ended = self._reflect(step, watch, changed=changed)
        self._save()
        return ended

    def _announce(self, text: str) -> None:
        task = self._work.task
        self._tools.brain.update(
            lambda capsule: replace(
                capsule,
                current_step=f"{task.id}, step {self._iteration}: {text}",
                verify_cmd=task.verify_cmd or "",
            )
        )
        self._tools.emit(
            StepStarted(
                task=task.id,
                candidate=self._candidate,
                iteration=self._iteration,
                step_goal=text,
            )
        )

    def _pursue(self, text: str) -> Step:
        work = self._work
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
        )
        return pursue(self._worker, request, self._sandbox, self._candidate, self._tools.emit)

    def _keep(self, step: Step) -> tuple[Step, bool]:
        """Keep the worktree's tree under the candidate's ref; say whether it is a new one.

        A worktree that the step has destroyed, or that git must not touch, is put back to the
        tree before the step, and the worker is told.
        """
        try:
            tree = self._sandbox.snapshot()
        except SandboxError as exc:
            self._sandbox.restore(self._tree)
            said = f"{exc}\nThe worktree was put back to how it was before the step.\n{step.said}"
            progress = replace(step.progress, tool_calls_errored=True)
            return replace(step, said=said, closed=None, progress=progress), False
        changed = tree not in self._seen
        self._seen.add(tree)
        self._tree = tree
        self._keep_tree()
        return step, changed

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
        progress = _signals(step, self._tree, changed=changed)
        self._finished(step, progress, watch)
        self._spend(step, watch.whole_ms(Phase.PURSUE), is_fault=is_fault)
        self._observation = step.observation
        if step.drafts:
            return self._end(StopReason(Axis.DEFER, step.drafts[0].kind), step.drafts)
        if is_fault:
            return self._fault(questions.environment(self._work.task, f"{step.said}."))
        ended = self._close(step.closed) if step.closed is not None else None
        if self._gate_excuses():
            return ended
        reopened = step.closed is not None and not self._plan.is_goal_met
        progress = replace(
            progress,
            todo_completed=progress.todo_completed and not reopened,
            gate_signature=self._gate.signature if self._gate is not None and reopened else "",
        )
        self._plan = observe(self._plan, progress, self._tools.stall)
        return ended

    def _close(self, summary: str) -> Ended | None:
        todo = self._plan.active
        if todo is None:
            return None
        self._plan = self._plan.with_todo(
            self._plan.cursor, status=TodoStatus.DONE, summary=summary
        )
        self._tools.emit(
            TodoClosed(
                task=self._work.task.id, candidate=self._candidate, todo=todo.text, summary=summary
            )
        )
        return self._judge() if self._plan.is_goal_met else None

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
        )
        began = self._tools.clock.monotonic()
        result = self._tools.gate.judge(candidate)
        self._add_wall(int((self._tools.clock.monotonic() - began) * 1000))
        self._tools.emit(
            GateFinished(
                task=self._work.task.id,
                candidate=self._candidate,
                head=result.head,
                tree=result.tree,
                checks=result.checks,
            )
        )
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
        self._tools.emit(
            TodoReopened(task=self._work.task.id, candidate=self._candidate, todo=todo.text)
        )

    def _fault(self, draft: DecisionDraft) -> Ended | None:
        """Count an environment fault; a human is asked when it lasts."""
        self._faults += 1
        if self._faults < FAULT_TRIES:
            return None
        return self._end(StopReason(Axis.DEFER, draft.kind), (draft,))

    def _add_wall(self, ms: int) -> None:
        budget = self._plan.budget
        self._plan = replace(self._plan, budget=replace(budget, wall_ms=budget.wall_ms + ms))

    def _spend(self, step: Step, ms: int, *, is_fault: bool) -> None:
        budget = self._plan.budget
        todo = self._plan.active
        if todo is not None:
            self._plan = self._plan.with_todo(self._plan.cursor, attempts=todo.attempts + 1)
        self._plan = replace(
            self._plan,
            budget=replace(
                budget,
                loops_used=budget.loops_used + (0 if is_fault else 1),
                wall_ms=budget.wall_ms + ms,
                tokens_used=budget.tokens_used
                + step.usage.prompt_tokens
                + step.usage.completion_tokens,
                usd_used=budget.usd_used + step.usage.usd,
            ),
        )

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
        checkpoint = Checkpoint(
            plan=self._plan,
            tree=self._tree,
            base=self._sandbox.base,
            observation=self._observation,
        )
        began = self._tools.clock.monotonic()
        self._tools.sessions.save_checkpoint(self._work.session.id, self._iteration, checkpoint)
        self._saving_ms = (self._tools.clock.monotonic() - began) * 1000

    def _finished(self, step: Step, progress: StepProgress, watch: Stopwatch) -> None:
        own = watch.ms(Phase.PLAN) + watch.ms(Phase.OBSERVE)
        self._tools.emit(
            StepFinished(
                task=self._work.task.id,
                candidate=self._candidate,
                iteration=self._iteration,
                tree=self._tree,
                ms=watch.whole_ms(Phase.PURSUE),
                progress=progress,
                exit=step.exit,
                tail=step.said,
                usage=step.usage,
                overhead_ms=round(self._saving_ms + own, 3),
                phases=watch.offsets_ms(),
            )
        )


def _signals(step: Step, tree: str, *, changed: bool) -> StepProgress:
    worker: WorkerProgress = step.progress
    return StepProgress(
        made_tool_calls=worker.made_tool_calls,
        tool_calls_errored=worker.tool_calls_errored,
        produced_new_artifacts=changed,
        todo_completed=step.closed is not None,
        response_delta_hash=worker.response_delta_hash,
        tree=tree,
        tool_calls_hash=worker.tool_calls_hash,
    )
