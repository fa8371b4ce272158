"""The table of the live view: which tasks and columns fit, and what each cell says. Pure."""

from collections import Counter
from collections.abc import Iterable
from datetime import datetime
from typing import TYPE_CHECKING, Final

from loopctl.clock import Clock
from loopctl.domain import TaskStatus
from loopctl.report.escape import one_line
from loopctl.report.fold import gate_line
from loopctl.report.summary import MAIN, RunSummary, TaskSummary

if TYPE_CHECKING:
    from rich.table import Table

_STYLES: Final = {
    TaskStatus.DONE: "green",
    TaskStatus.IN_PROGRESS: "cyan",
    TaskStatus.STUCK: "red",
    TaskStatus.BLOCKED: "red",
    TaskStatus.NEEDS_HUMAN: "yellow",
}
_AROUND: Final = 4
"""Lines that are no rows: title, heads, the rule below them, and the line on which the cursor is."""
_WIDE: Final = 110
_USUAL: Final = 72
_NARROW: Final = 54
_BESIDE: Final = 26
"""Columns that a narrow table needs for all but the ids."""
_DOING: Final = "doing"


def table(summary: RunSummary, clock: Clock, width: int, height: int) -> "Table":
    """Return the tasks with state, step, last gate, time and cost, fit for a terminal's size.

    Those at work are shown first; where not all fit, the caption says how many are left out.

    Args:
        summary: Of the run under way.
        clock: For how long each has been worked on.
        width: Columns of the terminal.
        height: Lines of the terminal.
    """
    from rich import box
    from rich.table import Table
    from rich.text import Text

    names = _columns(width)
    rows = _shown(summary.tasks, max(height - _AROUND, 1))
    cost = f"${summary.usage.usd:.2f}"
    title = one_line(f"{summary.run_id} {cost} {summary.goal}", max(width - 1, 1))
    made = Table(
        title=Text(title, no_wrap=True, overflow="ellipsis"),
        title_justify="left",
        caption_justify="left",
        box=box.SIMPLE_HEAD,
        show_edge=False,
        pad_edge=False,
        padding=(0, 1, 0, 0),
        expand=_DOING in names,
    )
    for name in names:
        made.add_column(
            name,
            no_wrap=True,
            overflow="ellipsis",
            ratio=1 if name == _DOING else None,
            max_width=_max_width(name, width),
        )
    for task in rows:
        cells = _cells(task, clock)
        made.add_row(*(Text(cells[name]) for name in names), style=_STYLES.get(task.status, ""))
    if len(rows) < len(summary.tasks):
        left = one_line(_left_out(summary.tasks, rows), max(width - 1, 1))
        made.caption = Text(left, no_wrap=True, overflow="ellipsis")
    return made


def _columns(width: int) -> tuple[str, ...]:
    """The columns that a terminal of that width has room for."""
    if width < _NARROW:
        return ("task", "state", "step", "cost")
    if width < _USUAL:
        return ("task", "state", "step", "cost", _DOING)
    return ("task", "state", "step", "gate", "time", "cost", _DOING)


def _max_width(name: str, width: int) -> int | None:
    if name == "task":
        return max(width // 4 if width >= _NARROW else width - _BESIDE, 6)
    if name == "gate":
        return None if width >= _WIDE else 12
    return 14 if name == "step" else None


def _shown(tasks: tuple[TaskSummary, ...], height: int) -> list[TaskSummary]:
    """As many tasks as fit: those at work, the newest that ended, the next; as in the manifest."""
    room = height if len(tasks) <= height else max(height - 1, 1)
    ended = sorted((task.ended for task in tasks if task.ended), reverse=True)
    rank = {moment: place for place, moment in enumerate(ended)}

    def weight(task: TaskSummary) -> tuple[int, int]:
        if task.activity is not None:
            return (0, 0)
        return (1, rank[task.ended]) if task.ended else (2, 0)

    chosen = {task.id for task in sorted(tasks, key=weight)[:room]}
    return [task for task in tasks if task.id in chosen]


def _left_out(tasks: Iterable[TaskSummary], rows: Iterable[TaskSummary]) -> str:
    """``… 12 more (3 done, 9 todo)``."""
    seen = {task.id for task in rows}
    counts = Counter(task.status.value for task in tasks if task.id not in seen)
    return f"… {counts.total()} more ({', '.join(f'{n} {s}' for s, n in counts.items())})"


def _cells(task: TaskSummary, clock: Clock) -> dict[str, str]:
    now = task.activity
    doing = now.step_goal or task.title if now else task.title
    if now and now.is_gating:
        doing = "gate"
    step = str(task.steps or "")
    if now and now.iteration:
        step = str(now.iteration)
        if now.candidate != MAIN:
            step = f"{now.candidate} {step}"
    return {
        "task": one_line(task.id),
        "state": task.status.value,
        "step": one_line(step),
        "gate": now.last_gate if now else gate_line(task.gate),
        "time": _elapsed(task, clock),
        "cost": f"{task.usage.usd:.2f}" if task.usage.usd else "",
        _DOING: one_line(doing),
    }


def _elapsed(task: TaskSummary, clock: Clock) -> str:
    """How long the newest work on a task has lasted, also once it has ended."""
    since = task.activity.since if task.activity else task.begun
    try:
        until = clock.now() if task.activity else datetime.fromisoformat(task.ended)
        seconds = int((until - datetime.fromisoformat(since)).total_seconds())
    except (ValueError, TypeError):
        return ""
    minutes, rest = divmod(max(seconds, 0), 60)
    return f"{minutes}:{rest:02d}"
