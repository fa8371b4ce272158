"""Folds events into spans: a run, its tasks, their steps, and the phases of each step.

``autoloop.run`` → ``autoloop.task`` → ``autoloop.step`` → ``plan``, ``pursue``, ``observe`` and
``reflect``. What happens to a task's plan is an event of its span: ``plan.created``,
``todo.done``, ``replan`` and ``terminate.<axis>``. Names are those of the loop's low-level design
§11. Times are those of the events, so that the tree is the same whenever it is made.
"""

from collections.abc import Mapping
from datetime import datetime

from opentelemetry.context import Context
from opentelemetry.trace import Span, Status, StatusCode, Tracer, set_span_in_context

from loopctl.domain import RunStatus
from loopctl.events import (
    AnyEvent,
    CandidateEnded,
    GateFinished,
    PlanCreated,
    PlanRevised,
    RunEnded,
    RunResumed,
    RunStarted,
    StatusChanged,
    StepFinished,
    StepStarted,
    TaskClaimed,
    TaskStopped,
    TodoClosed,
    TodoReopened,
)
from loopctl.suggestions import TodoAdded

_MS = 1_000_000
"""Nanoseconds in one."""

_Attributes = Mapping[str, str | int | float | bool]


class _Step:
    """A step of one candidate: begun, then answered, then over."""

    def __init__(self, began: StepStarted) -> None:
        self.began = began
        self.spans: list[Span] = []
        self.last_ns = _ns(began.ts)

    def end(self, at_ns: int) -> None:
        for span in self.spans:
            span.end(at_ns)


class SpanTree:
    """Called with the events of one invocation of a run, in order."""

    def __init__(self, tracer: Tracer) -> None:
        self._tracer = tracer
        self._run: Span | None = None
        self._tasks: dict[str, Span] = {}
        self._steps: dict[tuple[str, str], _Step] = {}
        self._last_ns = 0

    def __call__(self, event: AnyEvent) -> None:
        """Take one event; those that say nothing of a plan, a step or an end change nothing."""
        self._last_ns = max(self._last_ns, _ns(event.ts))
        match event:
            case RunStarted() | RunResumed():
                self._begin(event)
            case RunEnded():
                self._end(event)
            case TaskClaimed():
                self._task(event)
            case StepStarted() | StepFinished():
                self._step(event)
            case PlanCreated() | PlanRevised() | TodoClosed() | TodoReopened() | TodoAdded():
                self._plan(event)
            case GateFinished():
                self._seen(event.task, event.candidate, event.ts)
            case CandidateEnded():
                self._end_steps(event.task, event.name)
            case StatusChanged(signal="released"):
                self._end_task(event.task, event.ts)
            case TaskStopped():
                self._stopped(event)
            case _:
                pass

    def close(self) -> None:
        """End what no event has ended: the process was stopped in the middle."""
        for task in list(self._tasks):
            self._end_steps(task)
            self._tasks.pop(task).end(self._last_ns)
        if self._run is not None:
            self._run.end(self._last_ns)
            self._run = None

    def _begin(self, event: RunStarted | RunResumed) -> None:
        self.close()
        attributes: _Attributes = {"loop.run": event.run, "loop.tasks": len(event.tasks)}
        self._run = self._span("autoloop.run", _ns(event.ts), None, attributes)

    def _end(self, event: RunEnded) -> None:
        if self._run is not None:
            self._run.set_attributes(
                {"loop.status": event.status.value, "loop.exit_code": event.exit_code}
            )
            if event.status is RunStatus.FAILED:
                self._run.set_status(Status(StatusCode.ERROR))
        self.close()

    def _task(self, event: TaskClaimed) -> None:
        task = event.task or ""
        attributes = {"loop.task": task, "loop.title": event.title, "loop.worker": event.worker}
        self._tasks[task] = self._span("autoloop.task", _ns(event.ts), self._run, attributes)

    def _step(self, event: StepStarted | StepFinished) -> None:
        key = (event.task or "", event.candidate)
        if isinstance(event, StepStarted):
            if (before := self._steps.pop(key, None)) is not None:
                before.end(_ns(event.ts))
            self._steps[key] = _Step(event)
        elif (step := self._steps.get(key)) is not None:
            self._answered(step, event)

    def _answered(self, step: _Step, event: StepFinished) -> None:
        """Make the step's span and those of its phases; the last phase goes on."""
        now = _ns(event.ts)
        starts = dict(event.phases)
        began = now - int(max(starts.values(), default=event.ms) * _MS)
        attributes: _Attributes = {
            "loop.task": event.task or "",
            "loop.candidate": event.candidate,
            "loop.iteration": event.iteration,
            "loop.step_goal": step.began.step_goal,
            "loop.tree": event.tree,
            "loop.overhead_ms": event.overhead_ms,
            **({} if event.exit is None else {"loop.exit": event.exit}),
        }
        parent = self._tasks.get(event.task or "", self._run)
        whole = self._span("autoloop.step", began, parent, attributes)
        for name, start in starts.items():
            for phase in step.spans:
                phase.end(began + int(start * _MS))
            step.spans = [self._span(name, began + int(start * _MS), whole)]
        step.spans.append(whole)
        step.last_ns = now

    def _plan(
        self, event: PlanCreated | PlanRevised | TodoClosed | TodoReopened | TodoAdded
    ) -> None:
        self._seen(event.task, event.candidate, event.ts)
        span = self._tasks.get(event.task or "")
        if span is None:
            return
        name, attributes = _plan_event(event)
        span.add_event(name, {"loop.candidate": event.candidate, **attributes}, _ns(event.ts))

    def _stopped(self, event: TaskStopped) -> None:
        span = self._tasks.get(event.task or "")
        if span is not None:
            name = f"terminate.{event.axis.value}"
            span.add_event(name, {"loop.reason": event.reason}, _ns(event.ts))
            span.set_attributes({"loop.steps": event.steps, "loop.replans": event.replans})
        self._end_task(event.task, event.ts)

    def _end_task(self, task: str | None, ts: str) -> None:
        self._end_steps(task)
        if (span := self._tasks.pop(task or "", None)) is not None:
            span.end(_ns(ts))

    def _end_steps(self, task: str | None, candidate: str | None = None) -> None:
        """End the steps of a task where they were last heard of: landing is no part of them."""
        for key in [key for key in self._steps if key[0] == (task or "")]:
            if candidate in {None, key[1]}:
                step = self._steps.pop(key)
                step.end(step.last_ns)

    def _seen(self, task: str | None, candidate: str, ts: str) -> None:
        if (step := self._steps.get((task or "", candidate))) is not None:
            step.last_ns = _ns(ts)

    def _span(
        self, name: str, start_ns: int, parent: Span | None, attributes: _Attributes | None = None
    ) -> Span:
        context = set_span_in_context(parent) if parent is not None else Context()
        return self._tracer.start_span(
            name, context, start_time=start_ns, attributes=dict(attributes or {})
        )


def _plan_event(
    event: PlanCreated | PlanRevised | TodoClosed | TodoReopened | TodoAdded,
) -> tuple[str, _Attributes]:
    match event:
        case PlanCreated():
            return "plan.created", {"loop.todos": len(event.todos)}
        case PlanRevised():
            return "replan", {"loop.todos": len(event.todos), "loop.replans": event.replans}
        case TodoClosed():
            return "todo.done", {"loop.todo": event.todo}
        case TodoReopened():
            return "todo.reopened", {"loop.todo": event.todo}
        case TodoAdded():
            return "todo.added", {"loop.todo": event.todo, "loop.reason": event.reason}


def _ns(ts: str) -> int:
    """Return the moment of an event in nanoseconds since 1970."""
    return round(datetime.fromisoformat(ts).timestamp() * 1000) * _MS
