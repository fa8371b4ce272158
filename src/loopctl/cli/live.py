"""The live view on stderr: a table that is redrawn at a terminal, one line an event elsewhere."""

import sys
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from datetime import datetime
from threading import Lock
from typing import TYPE_CHECKING, TextIO

from loopctl.bootstrap import Listener
from loopctl.cli.lines import event_line
from loopctl.cli.output import is_plain, write
from loopctl.clock import Clock, SystemClock
from loopctl.domain import TaskStatus
from loopctl.events import AnyEvent
from loopctl.report.escape import one_line
from loopctl.report.fold import advance, summarize
from loopctl.report.summary import RunSummary, TaskSummary

if TYPE_CHECKING:
    from rich.console import RenderableType
    from rich.table import Table

_STYLES = {
    TaskStatus.DONE: "green",
    TaskStatus.IN_PROGRESS: "cyan",
    TaskStatus.STUCK: "red",
    TaskStatus.BLOCKED: "red",
    TaskStatus.NEEDS_HUMAN: "yellow",
}
_RESERVED_LINES = 4


class Follower:
    """Holds the newest summary of the run under way, its earlier invocations included."""

    def __init__(self, history: Callable[[str], Iterable[AnyEvent]]) -> None:
        """Remember where the events of a continued run are read."""
        self._history = history
        self._lock = Lock()
        self.summary = RunSummary()

    def __call__(self, event: AnyEvent) -> None:
        """Take one event; the first of a continued run brings the run's history with it."""
        with self._lock:
            if not self.summary.seq and event.seq > 1:
                self.summary = summarize(
                    known for known in self._history(event.run) if known.seq < event.seq
                )
            self.summary = advance(self.summary, event)


@contextmanager
def live_view(follower: Follower, stream: TextIO) -> Iterator[Listener]:
    """Yield the listener that shows a run on ``stream``.

    Args:
        follower: Called before the listener with every event.
        stream: Usually stderr.
    """
    if is_plain(stream):
        yield lambda event: write(stream, event_line(event) + "\n")
        return
    from rich.console import Console
    from rich.live import Live

    console = Console(file=stream, markup=False, highlight=False, emoji=False)
    clock = SystemClock()

    def render() -> "RenderableType":
        return table(follower.summary, clock, console.height - _RESERVED_LINES)

    with Live(get_renderable=render, console=console, refresh_per_second=4, transient=True):
        yield lambda _event: None


def table(summary: RunSummary, clock: Clock, height: int) -> "Table":
    """Return the tasks with state, step, last gate, time and cost; what is under way first."""
    from rich.table import Table
    from rich.text import Text

    rows = _shown(summary.tasks, max(height, 1))
    usd = f"${summary.usage.usd:.2f}"
    made = Table(title=Text(one_line(f"{summary.run_id}  {summary.goal}", 100)), expand=True)
    for name in ("task", "state", "step", "doing", "gate", "time", usd):
        made.add_column(
            name, no_wrap=True, overflow="ellipsis", ratio=3 if name == "doing" else None
        )
    for task in rows:
        made.add_row(
            *(Text(cell) for cell in _cells(task, clock)), style=_STYLES.get(task.status, "")
        )
    if len(rows) < len(summary.tasks):
        made.caption = f"and {len(summary.tasks) - len(rows)} more"
    return made


def _shown(tasks: tuple[TaskSummary, ...], height: int) -> list[TaskSummary]:
    """As many tasks as fit: those at work, then the latest that ended, in the manifest's order."""
    by_weight = sorted(tasks, key=lambda task: (task.activity is None, task.stop is None))
    chosen = {task.id for task in by_weight[:height]}
    return [task for task in tasks if task.id in chosen]


def _cells(task: TaskSummary, clock: Clock) -> tuple[str, ...]:
    now = task.activity
    doing = one_line(now.step_goal or task.title if now else task.title)
    gate = (
        now.last_gate if now else " ".join(f"{c.check.value}:{c.verdict.value}" for c in task.gate)
    )
    step = f"{now.candidate} {now.iteration}" if now and now.iteration else str(task.steps or "")
    usd = f"{task.usage.usd:.2f}" if task.usage.usd else ""
    return (
        one_line(task.id),
        task.status.value,
        one_line(step),
        doing,
        gate,
        _elapsed(now.since, clock) if now else "",
        usd,
    )


def _elapsed(since: str, clock: Clock) -> str:
    try:
        seconds = int((clock.now() - datetime.fromisoformat(since)).total_seconds())
    except (ValueError, TypeError):
        return ""
    minutes, rest = divmod(max(seconds, 0), 60)
    return f"{minutes}:{rest:02d}"


def guarded(listener: Listener) -> Listener:
    """Return the listener so that a fault in it is said once on stderr and never ends the run."""
    faults: list[Exception] = []

    def call(event: AnyEvent) -> None:
        if faults:
            return
        try:
            listener(event)
        except Exception as error:  # noqa: BLE001 - the run must go on without its view
            faults.append(error)
            write(sys.stderr, f"loop: a view of the run has failed and is off: {error!r}\n")

    return call
