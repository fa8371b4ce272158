"""Starts a process that outlives this one: a session of its own, no terminal, no input."""

import contextlib
import os
import signal
import subprocess
import tempfile
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import IO, Final

_END_S: Final = 10.0
"""How long a process may take to end that is not wanted any more, before it is killed."""


@dataclass(frozen=True, slots=True)
class Begun:
    """What became of a process by the time that it said its first line, or ended without one.

    Attributes:
        line: The first line of its standard output, without its end; empty where it ended.
        returncode: Of a process that ended; ``None`` where it goes on.
        output: What an ended process wrote to its standard error.
    """

    pid: int
    line: bytes
    returncode: int | None = None
    output: bytes = b""


def begin(argv: Sequence[str], *, cwd: Path, env: Mapping[str, str]) -> Begun:
    """Start a process and wait for the first line that it writes to its standard output.

    Until then its standard error is kept for the caller; the process itself has to put another
    file in the place of both streams before it writes that line.

    Raises:
        KeyboardInterrupt: The user did not want to wait; the process has been ended.
    """
    with tempfile.TemporaryFile() as errors:
        child = subprocess.Popen(
            argv,
            cwd=cwd,
            env=dict(env),
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=errors,
            start_new_session=True,
        )
        try:
            line = _first_line(child)
        except BaseException:
            _end(child)
            raise
        if line.endswith(b"\n"):
            # Nobody here waits for it; process 1 will.
            child.returncode = 0
            return Begun(child.pid, line.rstrip(b"\n"))
        returncode = child.wait()
        return Begun(child.pid, b"", returncode, _content(errors))


def _first_line(child: "subprocess.Popen[bytes]") -> bytes:
    if child.stdout is None:
        return b""
    with child.stdout:
        return child.stdout.readline()


def _content(file: IO[bytes]) -> bytes:
    file.seek(0)
    return file.read()


def _end(child: "subprocess.Popen[bytes]") -> None:
    """End the process as the user's Ctrl-C would, and wait for it."""
    child.send_signal(signal.SIGINT)
    with contextlib.suppress(subprocess.TimeoutExpired):
        child.wait(_END_S)
        return
    with contextlib.suppress(ProcessLookupError):
        os.killpg(child.pid, signal.SIGKILL)
    child.wait()
