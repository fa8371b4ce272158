"""Keeps the pasts of a run short: summaries are made ahead by a producer beside the work.

Two paths. Ahead: at a threshold of turns the older ones become a summary in the background, which
is taken in before a later step. In line: a past that does not fit its window is summarised while
its step waits. The threshold lies well before a full window, so that the second path is rare.

Source: the loop's low-level design §3.2 and §9.2; the spike's finding R3.
"""

import threading
from collections.abc import Callable
from concurrent.futures import Executor, Future, ThreadPoolExecutor
from dataclasses import dataclass

from loopctl.context.stretch import Entries, Stretch
from loopctl.context.summaries import Summarist, Written
from loopctl.context.window import Window
from loopctl.contextports import Oracle
from loopctl.domain import Limits
from loopctl.events import ContextCompacted
from loopctl.past import Past
from loopctl.ports import Emit
from loopctl.settings import ContextSettings

_NO_CAPS = Limits()


@dataclass(slots=True)
class _Order:
    """What the producer was asked for.

    Attributes:
        is_taken: It was taken in once; kept, in case that the step is taken again.
    """

    stretch: Stretch
    written: Future[Written]
    is_taken: bool = False


@dataclass(frozen=True, slots=True)
class _Case:
    """Whose past is tended."""

    session_id: str
    task: str
    caps: Limits
    window: Window

    def stretch(self, entries: Entries) -> Stretch:
        return Stretch(self.task, entries, self.window.summary_bytes, self.caps)


class BackgroundCompactor:
    """The port ``Compactor``; one for a run, for all its candidates.

    Args:
        run_id: The run.
        oracle: Writes the summaries; where it does not answer they are made by rule.
        settings_of: The context settings of a task, by its id: they differ by mode.
        emit: Told of each summary when it is taken in.
        producer: Runs what is made ahead; one thread where ``None``. Shut down by :meth:`close`.
    """

    def __init__(
        self,
        run_id: str,
        oracle: Oracle,
        settings_of: Callable[[str], ContextSettings],
        emit: Emit,
        producer: Executor | None = None,
    ) -> None:
        self._summarist = Summarist(run_id, oracle)
        self._settings_of = settings_of
        self._emit = emit
        self._producer = producer or ThreadPoolExecutor(1, thread_name_prefix="summaries")
        self._orders: dict[str, _Order] = {}
        self._lock = threading.Lock()
        self._is_closed = False

    def tend(self, session_id: str, task: str, past: Past, caps: Limits = _NO_CAPS) -> Past:
        """Return the past with the summaries that are ready; begin the next where it is time.

        Blocks, and summarises in line, only where the past no longer fits the window. What it
        returns does fit. The same past gives the same summaries again, at no cost, until the
        next one was begun: so a step may be taken again.

        Raises:
            CancelledError: The run was asked to stop.
        """
        settings = self._settings_of(task)
        window = Window(settings.compaction_threshold_events, settings.window_tokens)
        case = _Case(session_id, task, caps, window)
        past = self._take_in(case, past)
        if not window.holds(past):
            past = self._make_room(case, past)
        self._begin(case, past)
        return past

    def close(self) -> None:
        """End what is under way; nothing of it is kept.

        Waits for a question that was asked already, so that what it costs is settled.
        """
        with self._lock:
            self._is_closed = True
            self._orders.clear()
        self._producer.shutdown(wait=True, cancel_futures=True)

    def _take_in(self, case: _Case, past: Past) -> Past:
        order = self._orders.get(case.session_id)
        if order is None or not order.written.done() or order.written.cancelled():
            return past
        written = order.written.result()
        if not order.stretch.is_in(past):
            return past
        if not order.is_taken:
            order.is_taken = True
            self._tell(case, order.stretch, written, in_line=False)
        return order.stretch.replaced(past, written.text)

    def _make_room(self, case: _Case, past: Past) -> Past:
        """Summarise while the step waits; what is under way for this past is overtaken."""
        overtaken = self._orders.pop(case.session_id, None)
        if overtaken is not None:
            overtaken.written.cancel()
        while entries := case.window.overdue(past):
            stretch = case.stretch(entries)
            written = self._summarist.write(stretch)
            self._tell(case, stretch, written, in_line=True)
            past = stretch.replaced(past, written.text)
        return case.window.clipped(past)

    def _begin(self, case: _Case, past: Past) -> None:
        """Order the next summary, unless one is under way."""
        order = self._orders.get(case.session_id)
        is_idle = order is None or order.is_taken or order.written.done()
        entries = case.window.due(past)
        if not is_idle or not entries:
            return
        stretch = case.stretch(entries)
        with self._lock:
            if not self._is_closed:
                written = self._producer.submit(self._summarist.write, stretch)
                self._orders[case.session_id] = _Order(stretch, written)

    def _tell(self, case: _Case, stretch: Stretch, written: Written, *, in_line: bool) -> None:
        self._emit(
            ContextCompacted(
                task=case.task,
                session=case.session_id,
                first=stretch.first,
                last=stretch.last,
                in_line=in_line,
                is_fallback=written.is_fallback,
                is_merge=stretch.is_merge,
                threshold_events=case.window.threshold_events,
            )
        )
