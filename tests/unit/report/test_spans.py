import json
import subprocess
import sys
from collections.abc import Mapping
from datetime import UTC, datetime, timedelta

import pytest
from opentelemetry.sdk.trace import ReadableSpan, TracerProvider
from opentelemetry.sdk.trace.export import SimpleSpanProcessor
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter

from loopctl.domain import Axis, RunStatus, Scope, TaskStatus
from loopctl.events import (
    AnyEvent,
    CandidateEnded,
    GateFinished,
    Noticed,
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
from loopctl.plan import StepProgress
from loopctl.report.spans import is_asked_for, span_listener
from loopctl.report.spantree import SpanTree
from loopctl.suggestions import TodoAdded
from loopctl.verdict import Verdict

BEGIN = datetime(2026, 1, 2, 3, 4, 5, tzinfo=UTC)
MS = 1_000_000
ORIGIN = int(BEGIN.timestamp()) * 1000 * MS


def at(ms: int, event: AnyEvent) -> AnyEvent:
    moment = (BEGIN + timedelta(milliseconds=ms)).isoformat(timespec="milliseconds")
    return event.model_copy(update={"ts": moment.replace("+00:00", "Z"), "run": "r1"})


def begun(ms: int) -> list[AnyEvent]:
    start = RunStarted(goal="g", base="c1", branch="b", scope=Scope(), tasks=(("T1", "t"),))
    return [
        at(ms, start),
        at(ms + 1, TaskClaimed(task="T1", title="t", worker="command")),
        at(ms + 5, PlanCreated(task="T1", candidate="main", todos=("one",))),
    ]


def step(ms: int, iteration: int = 1, candidate: str = "main") -> list[AnyEvent]:
    """Of 100 ms up to its last phase; begins at ``ms``."""
    answered = StepFinished(
        task="T1",
        candidate=candidate,
        iteration=iteration,
        tree="t1",
        ms=60,
        progress=StepProgress(),
        exit=0,
        overhead_ms=40.0,
        phases=(("plan", 0.0), ("pursue", 10.0), ("observe", 70.0), ("reflect", 100.0)),
    )
    given = StepStarted(task="T1", candidate=candidate, iteration=iteration, step_goal="one")
    return [at(ms + 10, given), at(ms + 100, answered)]


def spans_of(events: list[AnyEvent]) -> list[ReadableSpan]:
    exporter = InMemorySpanExporter()
    provider = TracerProvider(shutdown_on_exit=False)
    provider.add_span_processor(SimpleSpanProcessor(exporter))
    tree = SpanTree(provider.get_tracer("test"))
    for event in events:
        tree(event)
    tree.close()
    return list(exporter.get_finished_spans())


Shape = tuple[str, str | None, int, int]


def shapes(spans: list[ReadableSpan]) -> list[Shape]:
    """Name, parent's name, begin and end in milliseconds; in the order of their begin."""
    names = {span.context.span_id: span.name for span in spans if span.context}
    found = [
        (
            span.name,
            names[span.parent.span_id] if span.parent else None,
            ((span.start_time or 0) - ORIGIN) // MS,
            ((span.end_time or 0) - ORIGIN) // MS,
        )
        for span in spans
    ]
    return sorted(found, key=lambda shape: (shape[2], -shape[3]))


def events_of(spans: list[ReadableSpan], name: str = "autoloop.task") -> list[tuple[str, int]]:
    [span] = [span for span in spans if span.name == name]
    return [(event.name, (event.timestamp - ORIGIN) // MS) for event in span.events]


def test_a_run_is_a_tree_of_tasks_steps_and_phases() -> None:
    gate = GateFinished(task="T1", candidate="main", head="c1", tree="t1", checks=())
    spans = spans_of(
        [
            *begun(0),
            *step(100),
            at(210, TodoClosed(task="T1", candidate="main", todo="one")),
            at(300, gate),
            at(350, TaskStopped(task="T1", axis=Axis.GOAL, reason="goal_met", steps=1)),
            at(400, RunEnded(status=RunStatus.COMPLETE, exit_code=0, head="c2")),
        ]
    )
    assert shapes(spans) == [
        ("autoloop.run", None, 0, 400),
        ("autoloop.task", "autoloop.run", 1, 350),
        ("autoloop.step", "autoloop.task", 100, 300),
        ("plan", "autoloop.step", 100, 110),
        ("pursue", "autoloop.step", 110, 170),
        ("observe", "autoloop.step", 170, 200),
        ("reflect", "autoloop.step", 200, 300),
    ]
    assert events_of(spans) == [("plan.created", 5), ("todo.done", 210), ("terminate.goal", 350)]
    assert len({span.context.trace_id for span in spans if span.context}) == 1


def test_attributes_say_which_run_task_and_step() -> None:
    spans = spans_of([*begun(0), *step(100)])
    found = {span.name: dict(span.attributes or {}) for span in spans}
    assert found["autoloop.run"] == {"loop.run": "r1", "loop.tasks": 1}
    assert found["autoloop.task"]["loop.task"] == "T1"
    assert found["autoloop.step"] == {
        "loop.task": "T1",
        "loop.candidate": "main",
        "loop.iteration": 1,
        "loop.step_goal": "one",
        "loop.tree": "t1",
        "loop.overhead_ms": 40.0,
        "loop.exit": 0,
    }


def test_a_step_ends_where_the_next_one_begins() -> None:
    spans = spans_of([*begun(0), *step(100), *step(250, 2), at(400, Noticed(text="x"))])
    steps = [shape for shape in shapes(spans) if shape[0] == "autoloop.step"]
    assert [(begin, end) for _, _, begin, end in steps] == [(100, 260), (250, 350)]


def test_candidates_have_steps_of_their_own() -> None:
    ended = CandidateEnded(task="T1", name="a", verdict=Verdict.FAIL, ref="")
    spans = spans_of(
        [*begun(0), *step(100, candidate="a"), *step(120, candidate="b"), at(500, ended)]
    )
    ends = {
        dict(span.attributes or {})["loop.candidate"]: ((span.end_time or 0) - ORIGIN) // MS
        for span in spans
        if span.name == "autoloop.step"
    }
    assert ends == {"a": 200, "b": 220}


@pytest.mark.parametrize("axis", list(Axis))
def test_every_end_is_an_event_with_its_axis(axis: Axis) -> None:
    stopped = TaskStopped(task="T1", axis=axis, reason="why", steps=1)
    spans = spans_of([*begun(0), at(9, stopped)])
    assert events_of(spans)[-1] == (f"terminate.{axis.value}", 9)


def test_what_happens_to_a_plan_is_an_event() -> None:
    spans = spans_of(
        [
            *begun(0),
            at(10, PlanRevised(task="T1", candidate="main", todos=("a", "b"), replans=1)),
            at(11, TodoClosed(task="T1", candidate="main", todo="a")),
            at(12, TodoReopened(task="T1", candidate="main", todo="a")),
            at(13, TodoAdded(task="T1", candidate="main", todo="b", reason="thin")),
        ]
    )
    names = [name for name, _ in events_of(spans)]
    assert names == ["plan.created", "replan", "todo.done", "todo.reopened", "todo.added"]


def test_a_task_that_is_given_back_ends_without_a_reason_to_stop() -> None:
    released = StatusChanged(
        task="T1", old=TaskStatus.IN_PROGRESS, new=TaskStatus.TODO, signal="released"
    )
    spans = spans_of([*begun(0), *step(100), at(300, released)])
    assert ("autoloop.task", "autoloop.run", 1, 300) in shapes(spans)
    assert [name for name, _ in events_of(spans)] == ["plan.created"]


def test_each_invocation_is_a_trace_and_nothing_stays_open() -> None:
    again = at(1000, RunResumed(reason="crash", tasks=(("T1", "t"),)))
    spans = spans_of([*begun(0), *step(100), again, at(1100, Noticed(text="x"))])
    runs = [shape for shape in shapes(spans) if shape[0] == "autoloop.run"]
    assert runs == [("autoloop.run", None, 0, 1000), ("autoloop.run", None, 1000, 1100)]


@pytest.mark.parametrize(
    ("env", "asked"),
    [
        ({}, False),
        ({"OTEL_SERVICE_NAME": "x"}, False),
        ({"OTEL_EXPORTER_OTLP_ENDPOINT": ""}, False),
        ({"OTEL_EXPORTER_OTLP_ENDPOINT": "http://127.0.0.1:1"}, True),
        ({"OTEL_EXPORTER_OTLP_TRACES_ENDPOINT": "http://127.0.0.1:1"}, True),
        ({"OTEL_TRACES_EXPORTER": "otlp"}, True),
        ({"OTEL_TRACES_EXPORTER": "none", "OTEL_EXPORTER_OTLP_ENDPOINT": "http://x"}, False),
        ({"OTEL_TRACES_EXPORTER": "console"}, False),
        ({"OTEL_SDK_DISABLED": "True", "OTEL_EXPORTER_OTLP_ENDPOINT": "http://x"}, False),
    ],
)
def test_spans_are_made_only_where_a_standard_variable_asks_for_them(
    env: Mapping[str, str], *, asked: bool
) -> None:
    assert is_asked_for(env) is asked
    if not asked:
        assert span_listener(env) is None


ABSENT = """
import importlib.abc, json, sys

class Absent(importlib.abc.MetaPathFinder):
    def find_spec(self, name, path=None, target=None):
        if name.split(".")[0] == "opentelemetry":
            raise ModuleNotFoundError(name, name=name)

if sys.argv[1] == "absent":
    sys.meta_path.insert(0, Absent())
from loopctl.report.spans import is_installed, span_listener
env = {"OTEL_EXPORTER_OTLP_ENDPOINT": "http://127.0.0.1:1"} if sys.argv[2] == "asked" else {}
made = span_listener(env) is not None
names = [name for name in sys.modules if name.startswith("opentelemetry.sdk")]
print(json.dumps([is_installed(), made, bool(names)]))
"""


@pytest.mark.parametrize(
    ("package", "asked", "found"),
    [
        ("absent", "asked", [False, False, False]),
        ("absent", "not", [False, False, False]),
        ("there", "not", [True, False, False]),
        ("there", "asked", [True, True, True]),
    ],
)
def test_without_the_package_or_the_wish_nothing_is_imported_and_no_listener_exists(
    package: str, asked: str, found: list[bool]
) -> None:
    done = subprocess.run(
        [sys.executable, "-c", ABSENT, package, asked],
        capture_output=True,
        text=True,
        timeout=60,
        check=True,
    )
    assert json.loads(done.stdout) == found
