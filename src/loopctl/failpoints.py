"""Named points at which a test kills the process; a release reaches them and nothing happens.

``LOOP_FAILPOINT=NAME:COUNT`` kills the process with SIGKILL when it reaches ``NAME`` for the
COUNT-th time. It is read once, by the entry of the process, which hands it to :func:`arm`.
"""

import os
import signal
import threading
from typing import Final, NoReturn

VARIABLE: Final = "LOOP_FAILPOINT"


class _Armed:
    """The one point that kills, and how often it may still be passed."""

    def __init__(self, name: str, count: int) -> None:
        self._name = name
        self._left = count
        self._lock = threading.Lock()

    def pass_by(self, name: str) -> None:
        if name != self._name:
            return
        with self._lock:
            self._left -= 1
            if self._left == 0:
                _die()


_armed: _Armed | None = None


def arm(spec: str) -> None:
    """Make this process die where ``spec`` (``NAME:COUNT``) says.

    Raises:
        ValueError: ``spec`` is not of that form, or the count is below 1.
    """
    global _armed  # noqa: PLW0603 - one process dies at one place
    name, _, count = spec.rpartition(":")
    if not name or not count.isdecimal() or int(count) < 1:
        raise ValueError(f"{VARIABLE}={spec}: a point and a count are needed, as in NAME:1")
    _armed = _Armed(name, int(count))


def reach(name: str) -> None:
    """Die here if a test has asked for it."""
    if _armed is not None:
        _armed.pass_by(name)


def _die() -> NoReturn:
    os.kill(os.getpid(), signal.SIGKILL)
    while True:  # The signal may take a moment; nothing of ours runs in it.
        signal.pause()
