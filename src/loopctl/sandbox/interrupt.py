"""Ctrl-C and friends: the first one asks the run to stop, a second one ends everything."""

import contextlib
import signal
import threading
from collections.abc import Iterator
from types import FrameType
from typing import Final

from loopctl.sandbox import process

_STOPPING: Final = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)


@contextlib.contextmanager
def cancel_on_signals(cancel: threading.Event) -> Iterator[None]:
    """Set ``cancel`` on the first signal; restore the handlers afterwards.

    Children are in sessions of their own, so a terminal's Ctrl-C reaches only this process, which
    ends them: in peace after the first signal, at once after a second one. Outside the main thread, where Python handles no signals, this does nothing.
    """
    if threading.current_thread() is not threading.main_thread():
        yield
        return

    def stop(number: int, _frame: FrameType | None) -> None:
        if cancel.is_set():
            process.kill_all()
            signal.signal(number, signal.SIG_DFL)
            signal.raise_signal(number)
        cancel.set()

    before = {number: signal.signal(number, stop) for number in _STOPPING}
    try:
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)
