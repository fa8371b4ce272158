"""A process that goes on beside others until it is ended: its pipes, its last words and its end.

It is started by ``process.py`` as all others are: a session of its own, no terminal, a tag by
which everything that comes of it is found.
"""

import contextlib
import os
import signal
import subprocess
import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import IO

from loopctl.domain import ExecResult
from loopctl.sandbox import process, proctree

GRACE_S = 2.0
"""After the end of its input, and again after SIGTERM, before the next means is taken."""

_SAID_BYTES = 8 << 10
_CHUNK = 1 << 16
_CHUNKS = 32
_TICK_S = 0.01


def begin(
    argv: Sequence[str], *, cwd: Path, env: Mapping[str, str], has_keeper: bool = False
) -> "LastingProcess | ExecResult":
    """Return the running process, or the result of one that is missing or cannot be executed.

    Confinement may tie its life to the thread that calls this, so that has to live as long.

    Args:
        argv: The program, looked up on the PATH of ``env``, and its arguments.
        cwd: Where it runs.
        env: Its whole environment, but for the tag that its descendants are found by.
        has_keeper: The first process only keeps the others inside: those get SIGTERM, and not it.

    Raises:
        SandboxError: ``cwd`` is gone.
    """
    tag = proctree.claim(lasts=True)
    try:
        with process.Streams(b"", None, merge_stderr=False) as streams:
            started = process.start(argv, cwd, proctree.tagged(dict(env), tag), streams)
    except BaseException:
        proctree.release(tag)
        raise
    if isinstance(started, ExecResult):
        proctree.release(tag)
        return started
    return LastingProcess(started, tag, has_keeper=has_keeper)


class LastingProcess:
    """What :func:`begin` has started; its pipes do not block."""

    def __init__(
        self, popen: "subprocess.Popen[bytes]", tag: proctree.Tag | None, *, has_keeper: bool
    ) -> None:
        self._popen = popen
        self._has_keeper = has_keeper
        self._tag = tag
        self._said = process.BoundedOutput(_SAID_BYTES)
        self._is_ended = False
        self.was_killed = False
        for pipe in self._pipes():
            os.set_blocking(pipe.fileno(), False)
        # In the order of the pipes, which are all there.
        self.stdin, self.stdout, self.stderr = (pipe.fileno() for pipe in self._pipes())

    @property
    def pid(self) -> int:
        """Its number, and that of its group and session."""
        return self._popen.pid

    def listen(self) -> bool:
        """Keep what there is now on its standard error; return False where nothing comes after it.

        Raises:
            BlockingIOError: There is nothing now.
        """
        chunk = os.read(self.stderr, _CHUNK)
        self._said.add(chunk)
        return bool(chunk)

    def last_words(self) -> str:
        """Return the beginning and the end of its standard error, as far as it was heard."""
        return self._said.value().decode("utf-8", "replace")

    def end(self) -> int:
        """Close its input, wait, end it and all that came of it; return its exit code.

        Takes twice :data:`GRACE_S` at most, and what a sweep takes. A second call does nothing.
        """
        if self._is_ended:
            return self._popen.returncode
        self._is_ended = True
        if self._popen.stdin is not None:
            self._popen.stdin.close()
        if not self._has_ended_within(GRACE_S):
            self.was_killed = True
            proctree.ask_to_end(self._popen.pid, has_keeper=self._has_keeper)
            self._has_ended_within(GRACE_S)
        # Not reaped yet, so its number, which is the group's, cannot be another's.
        self._signal(signal.SIGKILL)
        code = self._popen.wait()
        proctree.disown(self._popen.pid)
        proctree.sweep(self._tag, self._popen.pid)
        self._drain()
        for pipe in self._pipes():
            pipe.close()
        return code

    def _has_ended_within(self, seconds: float) -> bool:
        deadline = time.monotonic() + seconds
        while not process.has_exited(self._popen):
            if time.monotonic() > deadline:
                return False
            # What it still says must not keep it from ending.
            self._drain()
            time.sleep(_TICK_S)
        return True

    def _drain(self) -> None:
        # A part each time: one that never stops talking must not keep this from going on.
        with contextlib.suppress(BlockingIOError):
            for _ in range(_CHUNKS):
                if not os.read(self.stdout, _CHUNK):
                    break
        with contextlib.suppress(BlockingIOError):
            for _ in range(_CHUNKS):
                if not self.listen():
                    break

    def _signal(self, number: signal.Signals) -> None:
        with contextlib.suppress(ProcessLookupError, PermissionError):
            os.killpg(self._popen.pid, number)

    def _pipes(self) -> list[IO[bytes]]:
        popen = self._popen
        return [pipe for pipe in (popen.stdin, popen.stdout, popen.stderr) if pipe is not None]
