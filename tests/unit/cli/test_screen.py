import io
import re
from collections.abc import Sequence
from datetime import timedelta

import pytest
from rich.console import Console

from loopctl.cli.screen import table
from loopctl.domain import TaskStatus, Usage
from loopctl.report.summary import Activity, RunSummary, TaskSummary
from loopctl.testing import StillClock
from loopctl.verdict import Blame, Check, CheckResult, Verdict

GOAL = "Make the import \x1b[2J robust, whatever the files that people send look like"


def drawn(tasks: Sequence[TaskSummary], clock: StillClock, width: int, height: int) -> list[str]:
    summary = RunSummary(run_id="20261130T184500-3f2a", goal=GOAL, tasks=tuple(tasks))
    console = Console(width=width, height=height, file=io.StringIO(), record=True)
    console.print(table(summary, clock, width, height))
    return console.export_text().splitlines()


def many(clock: StillClock, running: Sequence[int], count: int = 50) -> list[TaskSummary]:
    """The first ten are done, those of ``running`` are worked on."""
    since = clock.now().isoformat()
    tasks = []
    for n in range(count):
        if n in running:
            work = Activity(since, "main", 2, "make it so")
            tasks.append(TaskSummary(f"T{n}", "x", TaskStatus.IN_PROGRESS, activity=work))
        elif n < 10:
            tasks.append(TaskSummary(f"T{n}", "x", TaskStatus.DONE, begun=since, ended=since))
        else:
            tasks.append(TaskSummary(f"T{n}", "x"))
    return tasks


@pytest.mark.parametrize("height", [6, 10, 24, 60])
@pytest.mark.parametrize("width", [20, 40, 60, 80, 160])
def test_the_table_fits_the_terminal(width: int, height: int) -> None:
    lines = drawn(many(StillClock(), [48]), StillClock(), width, height)
    assert len(lines) <= height - 1
    assert all(len(line) <= width for line in lines)


@pytest.mark.parametrize("height", [7, 10, 24])
def test_tasks_at_work_are_shown_wherever_they_stand(height: int) -> None:
    text = "\n".join(drawn(many(StillClock(), [30, 49]), StillClock(), 80, height))
    assert re.search("^T30 .*in-progress", text, re.MULTILINE)
    assert re.search("^T49 .*in-progress", text, re.MULTILINE)


def test_a_line_says_how_many_are_left_out_and_how_they_stand() -> None:
    lines = drawn(many(StillClock(), [49]), StillClock(), 80, 10)
    assert [line.split()[0] for line in lines[3:8]] == ["T0", "T1", "T2", "T3", "T49"]
    assert lines[8].strip() == "… 45 more (6 done, 39 todo)"


def test_more_tasks_at_work_than_lines_are_counted() -> None:
    lines = drawn(many(StillClock(), range(10, 40)), StillClock(), 80, 10)
    assert lines[-1].strip() == "… 45 more (10 done, 25 in-progress, 10 todo)"


def test_all_tasks_that_fit_are_shown_without_a_line_about_more() -> None:
    lines = drawn(many(StillClock(), [3], count=20), StillClock(), 80, 24)
    assert len(lines) == 23
    assert "more" not in lines[-1]


def test_the_table_shows_step_gate_time_and_cost() -> None:
    clock = StillClock()
    since = clock.now().isoformat()
    clock.pass_time(125)
    work = Activity(since, "regex", 3, "use \x1b[2J a pattern", "verify fail (introduced)")
    tasks = [
        TaskSummary("T1", "One", TaskStatus.IN_PROGRESS, activity=work, usage=Usage(1, 1, 0.25)),
        TaskSummary("T2", "Two", usage=Usage(1, 1, 0.5)),
    ]
    text = "\n".join(drawn(tasks, clock, 160, 20))
    for part in ("cost", "T1", "regex 3", "\\x1b[2J a pattern", "verify fail (introduced)", "2:05"):
        assert part in text
    assert "20261130T184500-3f2a $0.75 Make the import \\x1b[2J robust" in text
    assert "0.25" in text


def test_a_gate_under_way_is_said() -> None:
    clock = StillClock()
    work = Activity(clock.now().isoformat(), "main", 3, "use a pattern", is_gating=True)
    lines = drawn([TaskSummary("T1", "One", activity=work)], clock, 80, 24)
    assert lines[3].split() == ["T1", "todo", "3", "0:00", "gate"]


def test_a_task_that_has_ended_keeps_its_time_and_its_gate() -> None:
    clock = StillClock()
    begun = clock.now()
    check = CheckResult(Check.VERIFY, Verdict.FAIL, Blame.INTRODUCED)
    task = TaskSummary(
        "T1",
        "One",
        TaskStatus.STUCK,
        begun=begun.isoformat(),
        ended=(begun + timedelta(seconds=65)).isoformat(),
        gates=(("main", (check,)),),
    )
    clock.pass_time(1000)
    assert drawn([task], clock, 160, 24)[3].split() == [
        *("T1", "stuck", "verify", "fail", "(introduced)", "1:05", "One"),
    ]


@pytest.mark.parametrize(
    ("width", "heads"),
    [
        (160, "task state step gate time cost doing"),
        (80, "task state step gate time cost doing"),
        (60, "task state step cost doing"),
        (40, "task state step cost"),
    ],
)
def test_a_narrow_terminal_has_fewer_columns(width: int, heads: str) -> None:
    lines = drawn(many(StillClock(), [1]), StillClock(), width, 24)
    assert lines[1].split() == heads.split()
    assert "in-progress" in lines[4]
