"""Asks somebody at the terminal for consent while a run goes on: once, with a time limit."""

import contextlib
import os
import select
import threading
from collections.abc import Callable
from contextlib import AbstractContextManager
from typing import Final, TextIO

from loopctl.cli.answers import consent_word
from loopctl.cli.asking import described, meant
from loopctl.cli.output import write
from loopctl.clock import Clock, SystemClock
from loopctl.domain import TIMED_OUT, DecisionDraft, asks_consent
from loopctl.errors import CancelledError

_TICK_S: Final = 0.2
"""How soon a run that was asked to stop is noticed; nothing else wakes the one who waits."""
_CHUNK: Final = 4096


class TerminalConsent:
    """The port ``Consent`` at a terminal; of several questions one is asked at a time.

    Args:
        stdin: Read by its descriptor, so nobody else may read it; ``None`` where it is closed.
        stream: Where questions go; stdout is kept for the result.
        cancel: Set when the run is asked to stop.
        clock: For the time limit.
        quiet: Keeps others from writing to ``stream`` for as long as it is entered.
    """

    def __init__(
        self,
        stdin: TextIO | None,
        stream: TextIO,
        *,
        cancel: threading.Event | None = None,
        clock: Clock | None = None,
        quiet: Callable[[], AbstractContextManager[object]] = contextlib.nullcontext,
    ) -> None:
        self._stdin = stdin
        self._stream = stream
        self._cancel = cancel or threading.Event()
        self._clock = clock or SystemClock()
        self._quiet = quiet
        self._turn = threading.Lock()
        self._typed = b""
        self._is_closed = False

    def ask(self, draft: DecisionDraft, timeout_s: float) -> str | None:
        """Return the answer; ``approve`` or ``reject`` where it is about an approval.

        Returns:
            ``domain.TIMED_OUT`` when the time is up; ``None`` for an empty line, and at the end
            of input.

        Raises:
            CancelledError: The run was asked to stop.
        """
        deadline = self._clock.monotonic() + timeout_s
        # Whoever waits for a turn keeps an eye on the time and on the run as well.
        while not self._turn.acquire(timeout=_TICK_S):
            if self._left(deadline) <= 0:
                return TIMED_OUT
        try:
            with self._quiet():
                return self._ask(draft, deadline)
        finally:
            self._turn.release()

    def _ask(self, draft: DecisionDraft, deadline: float) -> str | None:
        if self._is_closed:
            return None
        self._forget_typed()
        how_long = f"{max(self._left(deadline), 0):.0f} seconds; an empty line leaves it for later"
        write(self._stream, f"\n{described(f'[{draft.kind.value}]', draft)}\n    {how_long}\n")
        while True:
            write(self._stream, "> ")
            line = self._line(deadline)
            text = meant(line.strip(), draft) if line is not None else ""
            if not text:
                why = "\nno answer" if line is None else "left for later"
                if line is None and self._left(deadline) <= 0:
                    write(self._stream, "\nno answer in time\n")
                    return TIMED_OUT
                write(self._stream, f"{why}: it is asked again at the end of the run\n")
                return None
            if not asks_consent(draft):
                return text
            if word := consent_word(text):
                return word
            write(self._stream, "answer with: approve or reject\n")

    def _forget_typed(self) -> None:
        """Drop what was typed before the question was there to be read: it cannot be its answer."""
        if self._stdin is not None and self._stdin.isatty():
            import termios

            self._typed = b""
            with contextlib.suppress(termios.error, OSError, ValueError):
                termios.tcflush(self._stdin.fileno(), termios.TCIFLUSH)

    def _line(self, deadline: float) -> str | None:
        """Return the next line as it is typed; ``None`` at the end of input or of the time."""
        while b"\n" not in self._typed:
            left = self._left(deadline)
            if left <= 0:
                return None
            chunk = self._read(min(left, _TICK_S))
            if chunk == b"":
                self._is_closed = self._stdin is None or not self._stdin.isatty()
                return None
            self._typed += chunk or b""
        line, _, self._typed = self._typed.partition(b"\n")
        return line.decode("utf-8", "replace")

    def _read(self, seconds: float) -> bytes | None:
        """Return what was typed within that time; empty at the end, ``None`` where nothing was."""
        if self._stdin is None:
            return b""
        try:
            descriptor = self._stdin.fileno()
            if not select.select([descriptor], [], [], seconds)[0]:
                return None
            return os.read(descriptor, _CHUNK)
        except (OSError, ValueError):
            return b""

    def _left(self, deadline: float) -> float:
        if self._cancel.is_set():
            raise CancelledError("the run was asked to stop")
        return deadline - self._clock.monotonic()
