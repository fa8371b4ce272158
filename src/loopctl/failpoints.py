"""Crash points: named places at which a test can kill the process, to prove that nothing is lost.

Without ``LOOP_FAILPOINT`` in the environment a point does nothing. With ``NAME:N`` the process
kills itself, with SIGKILL, at the N-th passage of that point; with ``trace=FILE`` every passage is
appended to a file, from which a sweep learns what there is to kill.
"""

import os
import signal
from collections import Counter
from collections.abc import Callable, Mapping
from typing import Final

VARIABLE: Final = "LOOP_FAILPOINT"

_armed: Callable[[str], object] | None = None


def reach(name: str) -> None:
    """Pass the point ``name``: before or after a durable write, or the start of a process."""
    if _armed is not None:
        _armed(name)


def arm(environ: Mapping[str, str]) -> None:
    """Do what ``LOOP_FAILPOINT`` says, from now on; called once, when the process starts."""
    global _armed  # noqa: PLW0603 - one switch for the process, read at every point
    wanted = environ.get(VARIABLE, "")
    kind, _, rest = wanted.partition("=")
    if not wanted:
        _armed = None
    elif kind == "trace":
        _armed = _tracer(rest)
    else:
        name, _, count = wanted.rpartition(":")
        _armed = _killer(name, int(count))


def _tracer(path: str) -> Callable[[str], object]:
    file = os.open(path, os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o600)
    return lambda name: os.write(file, f"{name}\n".encode())


def _killer(wanted: str, count: int) -> Callable[[str], None]:
    passed: Counter[str] = Counter()

    def pass_by(name: str) -> None:
        passed[name] += 1
        if name == wanted and passed[name] == count:
            os.kill(os.getpid(), signal.SIGKILL)

    return pass_by
