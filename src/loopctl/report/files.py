"""Keeps ``run.json``, ``report.md`` and ``report.html`` of a run current: a listener.

A file that cannot be written (a full disk) is no fault of the run: the last good one stays, and
:attr:`RunFiles.fault` says what happened.
"""

import json
import os
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from threading import Lock, Timer
from typing import Final

from loopctl import failpoints
from loopctl.clock import Clock, SystemClock
from loopctl.events import (
    AnyEvent,
    DecisionRaised,
    RunEnded,
    RunResumed,
    RunStarted,
    TaskLanded,
    TaskStopped,
    parse,
)
from loopctl.report.account import account, title
from loopctl.report.commands import Commands
from loopctl.report.fold import advance, summarize
from loopctl.report.html import to_html
from loopctl.report.markdown import to_markdown
from loopctl.report.summary import RunSummary, to_document

_TURNING_POINTS: Final = (
    RunStarted,
    RunResumed,
    TaskStopped,
    TaskLanded,
    DecisionRaised,
    RunEnded,
)


_CHEAP_S: Final = 0.05
_REST: Final = 20
"""How many times as long as it took to write the files they are left alone after that.

In a run of a thousand quick tasks the reports would else take longer than the work.
"""


class RunFiles:
    """Writes the files of one run; called with each of its events."""

    def __init__(
        self, folder: Path, commands: Commands | None = None, clock: Clock | None = None
    ) -> None:
        """Remember where to write; nothing is read or written yet.

        Args:
            folder: ``.local/runs/<run_id>``.
            commands: How commands are written for this reader.
            clock: Tells how long the writing takes.
        """
        self._folder = folder
        self._commands = commands or Commands()
        self._clock = clock or SystemClock()
        self._summary = RunSummary()
        self._lock = Lock()
        self._is_behind = False
        self._due_s = 0.0
        self._timer: Timer | None = None
        self.fault: str | None = None

    def __call__(self, event: AnyEvent) -> None:
        """Take one event; write at the turning points of a run. Never raises for the disk.

        Where writing has become dear, what comes in quick succession is written together.
        """
        with self._lock:
            if not self._summary.seq:
                self._summary = summarize(_history(self._folder / "events.jsonl", event.seq))
            self._summary = advance(self._summary, event)
            if isinstance(event, RunEnded):
                self._write()
            elif isinstance(event, _TURNING_POINTS):
                self._is_behind = True
                self._write_when_due()

    def close(self) -> None:
        """Write what waits to be written."""
        with self._lock:
            if self._timer is not None:
                self._timer.cancel()
                self._timer = None
            if self._is_behind:
                self._write()

    def _write_when_due(self) -> None:
        left_s = self._due_s - self._clock.monotonic()
        if left_s <= 0:
            self._write()
        elif self._timer is None:
            self._timer = Timer(left_s, self._write_late)
            self._timer.daemon = True
            self._timer.start()

    def _write_late(self) -> None:
        with self._lock:
            self._timer = None
            if self._is_behind:
                self._write()

    def _write(self) -> None:
        self._is_behind = False
        began_s = self._clock.monotonic()
        try:
            write_files(self._folder, self._summary, self._commands)
        except OSError as exc:
            self.fault = f"the report in {self._folder} could not be written: {exc.strerror or exc}"
        else:
            self.fault = None
        now_s = self._clock.monotonic()
        took_s = now_s - began_s
        self._due_s = now_s + _REST * took_s if took_s > _CHEAP_S else 0.0


def write_files(folder: Path, summary: RunSummary, commands: Commands) -> None:
    """Write the three files, each atomically, readable by their owner alone.

    Raises:
        OSError: One could not be written; the file that was there before is whole.
    """
    blocks = account(summary, commands)
    folder.mkdir(parents=True, exist_ok=True, mode=0o700)
    replace_file(folder / "run.json", to_json(summary))
    replace_file(folder / "report.md", to_markdown(blocks))
    replace_file(folder / "report.html", to_html(blocks, title(summary)))


def to_json(summary: RunSummary) -> str:
    """Return the document of ``run.json`` as text: ASCII, so harmless wherever it is shown."""
    return json.dumps(to_document(summary), indent=2) + "\n"


def replace_file(path: Path, text: str) -> None:
    """Write ``text`` beside ``path``, then rename it there; mode 0600.

    Only the process that drives the run writes here, so the draft has one name: what a killed one
    has left is written over. Not synced to the disk: after a power failure the file is made again
    from the events.
    """
    draft = path.with_name(f".{path.name}.new")
    flags = os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_NOFOLLOW | os.O_CLOEXEC
    descriptor = os.open(draft, flags, 0o600)
    try:
        with os.fdopen(descriptor, "w", encoding="utf-8", errors="backslashreplace") as file:
            file.write(text)
        failpoints.reach("report.before_replace")
        draft.replace(path)
        failpoints.reach("report.after_replace")
    except BaseException:
        with suppress(OSError):
            draft.unlink()
        raise


def _history(log: Path, before: int) -> Iterator[AnyEvent]:
    """The events of earlier invocations; what cannot be read is left out of the report."""
    if before <= 1:
        return
    with suppress(OSError), log.open("rb") as lines:
        for line in lines:
            with suppress(ValueError):
                event = parse(line)
                if event.seq < before:
                    yield event
