"""A process that lives on and is spoken to in lines over its pipes, beside the engine's threads.

It has a session of its own, no terminal and exactly the environment that it is given. It is gone
with all its children when it is closed and when it ends by itself. When the harness is killed its
standard input ends, which is its sign to go; what does not heed it is found by its tag later on.
"""

import contextlib
import os
import queue
import signal
import subprocess
import threading
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Final

from loopctl.errors import EnvironmentFaultError
from loopctl.sandbox import proctree

MAX_LINE_BYTES: Final = 256 << 20
"""Of a line that it says; one that says more is ended."""

TAIL_BYTES: Final = 4096
"""Of its standard error: the end of it is kept."""

_GRACE_S: Final = 2.0
_LAST_S: Final = 5.0
_CHUNK: Final = 1 << 16


class ProcessService:
    """The port ``Service``: a child process.

    Args:
        argv: The program, looked up on the PATH of ``env``, and its arguments.
        cwd: Where it runs.
        env: Its whole environment, but for the tag that it is found by.

    Raises:
        EnvironmentFaultError: It could not be started; says why.
    """

    def __init__(self, argv: Sequence[str], *, cwd: Path, env: Mapping[str, str]) -> None:
        self._tag = proctree.claim()
        # What lives as long as a run must not stand, as a command that goes on would, for the
        # orphans of others; its own are known by the tag and the session.
        proctree.release(self._tag)
        self._popen = _start(argv, cwd, proctree.tagged(dict(env), self._tag))
        self._lines: queue.SimpleQueue[bytes | None] = queue.SimpleQueue()
        self._tail = bytearray()
        self._returncode: int | None = None
        self._reading = threading.RLock()
        self._threads = [
            threading.Thread(target=work, name=f"service-{self._popen.pid}", daemon=True)
            for work in (self._write, self._listen, self._await_end)
        ]
        for thread in self._threads:
            thread.start()

    @property
    def pid(self) -> int:
        """Its process id, also that of its group."""
        return self._popen.pid

    @property
    def returncode(self) -> int | None:
        """How it ended (``-N`` by signal N); ``None`` while it goes on."""
        return self._returncode

    def send(self, line: bytes) -> None:
        """Hand over a line, without its end. Never blocks; lost where the process has ended."""
        self._lines.put(line + b"\n")

    def receive(self) -> bytes | None:
        """Return the next line, without its end; ``None`` when there will be no more.

        Blocks. For one thread alone.
        """
        stdout = self._popen.stdout
        with self._reading:
            line = b"" if stdout is None or stdout.closed else stdout.readline(MAX_LINE_BYTES)
            if line.endswith(b"\n"):
                return line[:-1]
            # Its end, or half a line: it was killed, or would never come to the line's end.
            self.close()
            return None

    def tail(self) -> str:
        """Return the end of what it has said to its standard error; all of it once it is closed."""
        return bytes(self._tail[-TAIL_BYTES:]).decode("utf-8", "replace").strip()

    def close(self) -> None:
        """End its input, wait a little, then kill what is left of it. More than once is fine."""
        self._lines.put(None)
        writer, listener, waiter = self._threads
        waiter.join(_GRACE_S)
        if waiter.is_alive():
            self._signal(signal.SIGKILL)
            waiter.join(_LAST_S)
        writer.join(_LAST_S)
        listener.join(_LAST_S)
        # Whoever waits for a line has been told the end by now, unless a lost child holds the pipe.
        if self._popen.stdout is not None and self._reading.acquire(timeout=_LAST_S):
            self._popen.stdout.close()
            self._reading.release()

    def _write(self) -> None:
        """Move lines into its standard input, which ends with the first ``None``."""
        stdin = self._popen.stdin
        if stdin is None:
            return
        with contextlib.suppress(BrokenPipeError):
            while (line := self._lines.get()) is not None:
                stdin.write(line)
                stdin.flush()
        with contextlib.suppress(BrokenPipeError):
            stdin.close()

    def _listen(self) -> None:
        """Keep the end of what it says to its standard error."""
        stderr = self._popen.stderr
        if stderr is None:
            return
        with stderr:
            while chunk := os.read(stderr.fileno(), _CHUNK):
                self._tail += chunk
                # Cut at twice the room, so that the bytes are not moved for every chunk.
                if len(self._tail) > 2 * TAIL_BYTES:
                    del self._tail[:-TAIL_BYTES]

    def _await_end(self) -> None:
        """Wait for its end, and end what is left of its group and of its other children."""
        if hasattr(os, "waitid"):
            # Not reaped yet, so that its number, which is the group's, cannot be another's.
            with contextlib.suppress(ChildProcessError):
                os.waitid(os.P_PID, self._popen.pid, os.WEXITED | os.WNOWAIT)
        else:
            self._popen.wait()
        self._signal(signal.SIGKILL)
        self._returncode = self._popen.wait()
        proctree.disown(self._popen.pid)
        proctree.sweep(self._tag, self._popen.pid)
        self._lines.put(None)

    def _signal(self, number: signal.Signals) -> None:
        with contextlib.suppress(ProcessLookupError, PermissionError):
            os.killpg(self._popen.pid, number)


def _start(argv: Sequence[str], cwd: Path, env: Mapping[str, str]) -> "subprocess.Popen[bytes]":
    try:
        with proctree.adoption() as adopt:
            child = subprocess.Popen(
                argv,
                cwd=cwd,
                env=env,
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=subprocess.PIPE,
                start_new_session=True,
            )
            adopt(child.pid)
    except (OSError, ValueError) as error:
        raise EnvironmentFaultError(
            f"the process {argv[0]} could not be started in {cwd}: {error}"
        ) from error
    return child
