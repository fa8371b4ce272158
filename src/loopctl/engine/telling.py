"""Tells what happens to one candidate: the events of a plan loop, with task and name filled in."""

from dataclasses import dataclass

from loopctl.engine.phases import Phase, Stopwatch
from loopctl.engine.pursuit import Step
from loopctl.events import (
    GateFinished,
    MessageRejected,
    PlanCreated,
    PlanRevised,
    StepFinished,
    StepStarted,
    TodoClosed,
    TodoReopened,
)
from loopctl.plan import Plan, StepProgress
from loopctl.ports import Emit
from loopctl.suggestions import TodoAdded
from loopctl.verdict import GateResult


@dataclass(frozen=True, slots=True)
class Teller:
    """Emits the events of one candidate of one task."""

    emit: Emit
    task: str
    candidate: str

    def plan_created(self, plan: Plan) -> None:
        """A plan stands."""
        todos = tuple(todo.text for todo in plan.todos)
        self.emit(PlanCreated(task=self.task, candidate=self.candidate, todos=todos))

    def plan_revised(self, plan: Plan, todos: tuple[str, ...]) -> None:
        """A re-plan was accepted; ``todos`` are open now."""
        self.emit(
            PlanRevised(task=self.task, candidate=self.candidate, todos=todos, replans=plan.replans)
        )

    def step_started(self, iteration: int, step_goal: str) -> None:
        """A worker was given one sub-goal."""
        self.emit(
            StepStarted(
                task=self.task, candidate=self.candidate, iteration=iteration, step_goal=step_goal
            )
        )

    def step_finished(
        self, iteration: int, step: Step, progress: StepProgress, tree: str, watch: Stopwatch
    ) -> None:
        """The worker has answered; its tree is kept, and its last phase has begun."""
        self.emit(
            StepFinished(
                task=self.task,
                candidate=self.candidate,
                iteration=iteration,
                tree=tree,
                ms=watch.until_ms(Phase.OBSERVE),
                progress=progress,
                exit=step.exit,
                tail=step.said,
                usage=step.usage,
                overhead_ms=round(watch.overhead_ms, 3),
                phases=watch.offsets_ms(),
            )
        )

    def rejected(self, error: str) -> None:
        """Something that the worker said was not taken over."""
        self.emit(MessageRejected(task=self.task, candidate=self.candidate, error=error))

    def todo_closed(self, todo: str, summary: str) -> None:
        """The worker has closed a todo."""
        self.emit(TodoClosed(task=self.task, candidate=self.candidate, todo=todo, summary=summary))

    def todo_reopened(self, todo: str) -> None:
        """The gate has failed."""
        self.emit(TodoReopened(task=self.task, candidate=self.candidate, todo=todo))

    def todo_added(self, todo: str, reason: str) -> None:
        """A judge of prose asks for more."""
        self.emit(TodoAdded(task=self.task, candidate=self.candidate, todo=todo, reason=reason))

    def gate_finished(self, gate: GateResult) -> None:
        """The gate has judged."""
        self.emit(
            GateFinished(
                task=self.task,
                candidate=self.candidate,
                head=gate.head,
                tree=gate.tree,
                checks=gate.checks,
            )
        )
