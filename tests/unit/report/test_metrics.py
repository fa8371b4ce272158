"""The metrics, read back by a strict reader of the text format."""

import math
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

import pytest

from loopctl.domain import Axis, DecisionKind
from loopctl.events import (
    AnyEvent,
    CallFinished,
    CallReplayed,
    DecisionAnswered,
    DecisionRaised,
    PlanCreated,
    PlanRevised,
    StepFinished,
    StepStarted,
    TaskStopped,
    TodoClosed,
    TodoReopened,
)
from loopctl.plan import StepProgress
from loopctl.report.exposition import Histogram, family, histogram
from loopctl.report.metrics import metrics_text

Labels = frozenset[tuple[str, str]]
NAME = re.compile(r"[a-zA-Z_:][a-zA-Z0-9_:]*")
LABEL = re.compile(r'([a-zA-Z_][a-zA-Z0-9_]*)="((?:[^"\\\n]|\\[\\n"])*)"(,|$)')
SUFFIXES = {"counter": ("",), "histogram": ("_bucket", "_sum", "_count")}


@dataclass
class Family:
    meaning: str
    kind: str = ""
    samples: dict[tuple[str, Labels], float] = field(default_factory=dict)


def unescaped(text: str) -> str:
    known = {"\\\\": "\\", '\\"': '"', "\\n": "\n"}
    return re.sub(r'\\[\\n"]', lambda found: known[found[0]], text)


def labels_of(text: str) -> Labels:
    found: list[tuple[str, str]] = []
    while text:
        match = LABEL.match(text)
        assert match, text
        found.append((match[1], unescaped(match[2])))
        text = text[match.end() :]
    assert len({name for name, _ in found}) == len(found)
    return frozenset(found)


def read(text: str) -> dict[str, Family]:
    """Return the families of an exposition; anything that the format does not have is an error."""
    assert text.endswith("\n")
    families: dict[str, Family] = {}
    current = ""
    for line in text.removesuffix("\n").split("\n"):
        assert line == line.strip()
        if line.startswith("# HELP "):
            current, _, meaning = line.removeprefix("# HELP ").partition(" ")
            assert NAME.fullmatch(current)
            assert current not in families, "a family is written in one piece"
            families[current] = Family(meaning)
        elif line.startswith("# TYPE "):
            name, _, kind = line.removeprefix("# TYPE ").partition(" ")
            assert name == current
            assert not families[name].kind
            assert not families[name].samples
            assert kind in SUFFIXES
            families[name].kind = kind
        else:
            match = re.fullmatch(r"([^{ ]+)(?:\{(.*)\})? ([^ ]+)", line)
            assert match, line
            of = families[current]
            assert match[1] in {current + suffix for suffix in SUFFIXES[of.kind]}
            key = (match[1], labels_of(match[2] or ""))
            assert key not in of.samples
            value = float(match[3])
            assert value >= 0
            of.samples[key] = value
    for name, of in families.items():
        if of.kind == "histogram":
            check_histogram(name, of)
        else:
            assert name.endswith("_total")
            assert all(math.isfinite(value) for value in of.samples.values())
    return families


def check_histogram(name: str, of: Family) -> None:
    bounds = [
        (float(dict(labels)["le"]), value)
        for (sample, labels), value in of.samples.items()
        if sample == f"{name}_bucket"
    ]
    assert bounds == sorted(bounds)
    assert [value for _, value in bounds] == sorted(value for _, value in bounds)
    assert bounds[-1] == (math.inf, of.samples[f"{name}_count", frozenset()])
    assert (f"{name}_sum", frozenset()) in of.samples


def counted(*runs: Sequence[AnyEvent]) -> dict[str, Mapping[str, float]]:
    """Return each family's samples by the value of their only label."""
    return {
        name: {next((value for _, value in labels), ""): n for (_, labels), n in of.samples.items()}
        for name, of in read(metrics_text(runs)).items()
        if of.kind == "counter"
    }


def started(iteration: int, task: str = "T1") -> StepStarted:
    return StepStarted(task=task, candidate="main", iteration=iteration, step_goal="")


def finished(overhead_ms: float, phases: tuple[tuple[str, float], ...]) -> StepFinished:
    return StepFinished(
        task="T1",
        candidate="main",
        iteration=1,
        tree="t",
        ms=1,
        progress=StepProgress(),
        overhead_ms=overhead_ms,
        phases=phases,
    )


def closed(task: str = "T1") -> TodoClosed:
    return TodoClosed(task=task, candidate="main", todo="x")


def reopened(task: str = "T1") -> TodoReopened:
    return TodoReopened(task=task, candidate="main", todo="x")


def stopped(axis: Axis, reason: str) -> TaskStopped:
    return TaskStopped(task="T1", axis=axis, reason=reason, steps=1)


def test_every_family_is_there_with_zeros_where_nothing_happened() -> None:
    found = read(metrics_text(()))
    assert {(name, of.kind) for name, of in found.items()} == {
        ("autoloop_plans_started_total", "counter"),
        ("autoloop_todos_completed_total", "counter"),
        ("autoloop_replans_total", "counter"),
        ("autoloop_terminations_total", "counter"),
        ("autoloop_stall_total", "counter"),
        ("autoloop_step_overhead_seconds", "histogram"),
        ("autoloop_interrupt_approvals_total", "counter"),
        ("mcp_idempotency_dedup_hits_total", "counter"),
        ("compaction_sync_fallback_total", "counter"),
    }
    assert {value for of in found.values() for value in of.samples.values()} == {0}
    numbers = counted()
    assert set(numbers["autoloop_terminations_total"]) == set(Axis)
    assert {"no_progress", "replan_cap"} <= set(numbers["autoloop_stall_total"])
    assert set(numbers["autoloop_interrupt_approvals_total"]) == {"approved", "rejected", "timeout"}


def test_plans_replans_and_ends_are_counted_over_all_runs() -> None:
    run = (
        PlanCreated(task="T1", candidate="main", todos=("x",)),
        PlanRevised(task="T1", candidate="main", todos=("x", "y"), replans=1),
        stopped(Axis.STALL, "replan_cap"),
    )
    numbers = counted(run, [*run, stopped(Axis.GOAL, "goal_met"), stopped(Axis.STALL, "new one")])
    assert numbers["autoloop_plans_started_total"] == {"": 2}
    assert numbers["autoloop_replans_total"] == {"": 2}
    ends = {axis: n for axis, n in numbers["autoloop_terminations_total"].items() if n}
    assert ends == {"stall": 3, "goal": 1}
    stalls = {reason: n for reason, n in numbers["autoloop_stall_total"].items() if n}
    assert stalls == {"replan_cap": 2, "new one": 1}


@pytest.mark.parametrize(
    ("events", "count"),
    [
        ([started(1), closed()], 1),
        ([started(1), closed(), reopened()], 0),
        ([started(1), closed(), reopened(), started(2), closed()], 1),
        ([started(1), closed(), started(2), closed()], 2),
        ([started(1), closed(), started(1), closed()], 1),
        ([started(1), closed(), started(1, "T2"), closed("T2"), reopened("T2")], 1),
    ],
    ids=["closed", "opened again", "closed at last", "two", "step taken again", "two tasks"],
)
def test_a_todo_counts_once_and_only_if_no_gate_opened_it(
    events: Sequence[AnyEvent], count: int
) -> None:
    assert counted(events)["autoloop_todos_completed_total"] == {"": count}


def test_only_approvals_count_as_approvals() -> None:
    kinds = {"A.1": DecisionKind.APPROVAL, "A.2": DecisionKind.APPROVAL, "A.3": DecisionKind.SCOPE}
    raised = [DecisionRaised(id=key, kind=kind, question="?") for key, kind in kinds.items()]
    answers = {"A.1": "approve", "A.2": "reject", "A.3": "approve"}
    answered = [DecisionAnswered(id=key, answer=answer) for key, answer in answers.items()]
    numbers = counted([*raised, *answered])["autoloop_interrupt_approvals_total"]
    assert numbers == {"approved": 1, "rejected": 1, "timeout": 0}


def test_a_call_that_is_answered_without_being_made_again_is_counted() -> None:
    where = CallFinished(task="T1", candidate="main", iteration=1, ordinal=1, tool="t", key="k")
    again = CallReplayed(
        task="T1", candidate="main", iteration=1, ordinal=1, tool="t", key="k", source="ledger"
    )
    numbers = counted([where, again, again])
    assert numbers["mcp_idempotency_dedup_hits_total"] == {"": 2}


def test_overhead_falls_into_the_buckets_that_hold_it_and_unmeasured_steps_do_not_count() -> None:
    phases = (("plan", 0.0), ("reflect", 9.0))
    steps = [finished(2.5, phases), finished(80.0, phases), finished(9000.0, phases)]
    found = read(metrics_text([[*steps, finished(0.0, ())]]))["autoloop_step_overhead_seconds"]
    buckets = {
        dict(labels)["le"]: value for (name, labels), value in found.samples.items() if labels
    }
    assert (buckets["0.001"], buckets["0.0025"]) == (0, 1)
    assert (buckets["0.05"], buckets["0.1"], buckets["2.5"], buckets["+Inf"]) == (1, 2, 2, 3)
    assert found.samples["autoloop_step_overhead_seconds_sum", frozenset()] == 9.0825


def test_labels_and_help_are_escaped() -> None:
    value = 'a "quote", a \\ and\na line'
    text = family("x_total", "a \\ and\na line", {(("reason", value), ("b", "")): 3})
    [of] = read(text).values()
    assert of.samples == {("x_total", frozenset({("reason", value), ("b", "")})): 3}
    assert text.startswith("# HELP x_total a \\\\ and\\na line\n")


def test_an_odd_reason_stays_one_label() -> None:
    odd = 'no "way"\n\\'
    assert counted([stopped(Axis.STALL, odd)])["autoloop_stall_total"][odd] == 1


def test_a_value_on_the_bound_is_in_its_bucket() -> None:
    values = Histogram((1.0, 2.0))
    for value in (1.0, 2.0, 3.0):
        values.observe(value)
    assert list(values.buckets()) == [("1", 1), ("2", 2), ("+Inf", 3)]
    read(histogram("h_seconds", "m", values))


def test_every_family_is_on_the_reference_page() -> None:
    page = (Path(__file__).parents[3] / "docs/reference/metrics.md").read_text("utf-8")
    rows = dict(re.findall(r"^\| `(\w+)(?:\{\w+\})?` \| (\w+) \|", page, re.MULTILINE))
    assert rows == {name: of.kind for name, of in read(metrics_text(())).items()}
