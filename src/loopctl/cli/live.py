"""The live view on stderr: a table that is redrawn at a terminal, one line an event elsewhere."""

import sys
from collections.abc import Callable, Iterable, Iterator
from contextlib import AbstractContextManager, contextmanager, nullcontext
from dataclasses import dataclass
from threading import Lock
from typing import TYPE_CHECKING, TextIO

from loopctl.bootstrap import Listener
from loopctl.cli.lines import event_line
from loopctl.cli.output import is_plain, outlet, write
from loopctl.cli.screen import table
from loopctl.clock import SystemClock
from loopctl.events import AnyEvent
from loopctl.report.fold import advance, summarize
from loopctl.report.summary import RunSummary

if TYPE_CHECKING:
    from rich.console import RenderableType


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


@dataclass(frozen=True)
class View:
    """Shows a run: a listener.

    Attributes:
        quiet: Entered, nothing is drawn: somebody is asked something on the same stream.
    """

    show: Listener
    quiet: Callable[[], AbstractContextManager[object]] = nullcontext

    def __call__(self, event: AnyEvent) -> None:
        """Show an event."""
        self.show(event)


@contextmanager
def live_view(follower: Follower, stream: TextIO) -> Iterator[View]:
    """Yield what shows a run on ``stream``.

    Args:
        follower: Called before the listener with every event.
        stream: Usually stderr.
    """
    if is_plain(stream):

        def line(event: AnyEvent) -> None:
            write(stream, event_line(event) + "\n")

        yield View(line)
        return
    from rich.console import Console
    from rich.live import Live

    console = Console(file=outlet(stream), markup=False, highlight=False, emoji=False)
    clock = SystemClock()

    def render() -> "RenderableType":
        return table(follower.summary, clock, console.width, console.height)

    with Live(get_renderable=render, console=console, refresh_per_second=4, transient=True) as live:

        @contextmanager
        def quiet() -> Iterator[None]:
            live.stop()
            try:
                yield
            finally:
                live.start()

        yield View(lambda _event: None, quiet)


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
