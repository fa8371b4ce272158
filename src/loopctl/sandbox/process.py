"""Starts processes: the only module that does.

Every process gets a session of its own, no terminal, pipes instead of files, a time limit and a
bounded output buffer, and is gone with all its children when :func:`run` returns.
"""

import contextlib
import errno
import os
import selectors
import signal
import subprocess
import threading
import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import IO, Self

from loopctl import failpoints
from loopctl.domain import ExecResult
from loopctl.errors import CancelledError, SandboxError
from loopctl.records import Most
from loopctl.sandbox import proctree
from loopctl.sandbox.crowd import Crowd

MAX_OUTPUT_BYTES = 10 << 20
NOT_FOUND = 127
NOT_EXECUTABLE = 126

_GRACE_S = 2.0
_DRAIN_S = 2.0
_TICK_S = 0.05
_CHUNK = 1 << 16


class BoundedOutput:
    """The head and the tail of a stream, and the number of bytes that fell between them."""

    def __init__(self, limit: int) -> None:
        self._head_room = limit - limit // 2
        self._tail_room = limit // 2
        self._head = bytearray()
        self._tail = bytearray()
        self._missing = 0

    def add(self, chunk: bytes) -> None:
        """Take the next bytes of the stream."""
        room = self._head_room - len(self._head)
        if room > 0:
            self._head += chunk[:room]
            chunk = chunk[room:]
        self._tail += chunk
        # Cut at twice the room, so that the bytes are not moved for every chunk.
        if len(self._tail) > 2 * self._tail_room + _CHUNK:
            self._cut()

    @property
    def is_truncated(self) -> bool:
        """Some bytes are missing."""
        return self._missing > 0 or len(self._tail) > self._tail_room

    def value(self) -> bytes:
        """Return what was kept, with one line that says how many bytes are missing."""
        self._cut()
        if not self._missing:
            return bytes(self._head + self._tail)
        note = f"\n[... {self._missing} bytes of output left out ...]\n".encode()
        return bytes(self._head + note + self._tail)

    def _cut(self) -> None:
        excess = len(self._tail) - self._tail_room
        if excess > 0:
            del self._tail[:excess]
            self._missing += excess


def run(
    argv: Sequence[str | bytes],
    *,
    cwd: Path,
    env: Mapping[str, str],
    timeout_s: float,
    stdin: bytes | Path | None = None,
    output: Path | None = None,
    max_output_bytes: int = MAX_OUTPUT_BYTES,
    merge_stderr: bool = False,
    cancel: threading.Event | None = None,
    is_trusted: bool = False,
    has_keeper: bool = False,
    most: Most | None = None,
) -> ExecResult:
    """Return how a process ended; a program that is missing or cannot be executed is a value too.

    Args:
        argv: The program, looked up on the PATH of ``env``, and its arguments.
        cwd: Where it runs.
        env: Its whole environment, but for the tag that its descendants are found by.
        timeout_s: After this many seconds its group gets SIGTERM and two seconds later SIGKILL.
        stdin: What it may read, or a file with it; nothing where ``None``.
        output: A file that takes its standard output instead; never for a command of a worker, which
            could open it anew and read what others have written.
        max_output_bytes: Of each stream, head and tail.
        merge_stderr: Standard error goes where standard output goes.
        cancel: Ends it when set.
        is_trusted: It leaves no processes behind by its nature (git): the search for them is
            spared.
        has_keeper: The first process only keeps the others inside and takes them along when it
            ends: those get SIGTERM, and not it.
        most: All that has come of it is killed when it takes more.

    Raises:
        SandboxError: ``cwd`` is gone.
        CancelledError: ``cancel`` was set; all its processes have been ended.
    """
    if cancel is not None and cancel.is_set():
        raise CancelledError("the run was asked to stop")
    begun = time.monotonic()
    tag = None if is_trusted else proctree.claim()
    try:
        failpoints.reach("process.before_start")
        with Streams(stdin, output, merge_stderr=merge_stderr) as streams:
            started = start(argv, cwd, proctree.tagged(dict(env), tag), streams)
        failpoints.reach("process.after_start")
    except BaseException:
        proctree.release(tag)
        raise
    if isinstance(started, ExecResult):
        proctree.release(tag)
        return started
    words = stdin if isinstance(stdin, bytes) else b""
    crowd = Crowd(started.pid, tag, most)
    child = _Child(started, words, max_output_bytes, crowd, has_keeper=has_keeper)
    try:
        ended_by = child.watch(begun + timeout_s, cancel)
    finally:
        child.finish(tag)
    failpoints.reach("process.after_end")
    if ended_by == "cancel":
        raise CancelledError("the run was asked to stop")
    return child.result(begun, timed_out=ended_by == "timeout")


def kill_all() -> None:
    """Kill every process that runs, with all its children; safe in a signal handler.

    Only for a process that ends next: its other threads start nothing any more.
    """
    proctree.end_all()


class Streams:
    """What a process is given as its standard streams; files are open while it starts."""

    def __init__(
        self, stdin: bytes | Path | None, output: Path | None, *, merge_stderr: bool
    ) -> None:
        self.stdin: int | IO[bytes] = subprocess.DEVNULL if stdin is None else subprocess.PIPE
        self.stdout: int | IO[bytes] = subprocess.PIPE
        self.stderr = subprocess.STDOUT if merge_stderr else subprocess.PIPE
        self._files = contextlib.ExitStack()
        if isinstance(stdin, Path):
            self.stdin = self._files.enter_context(stdin.open("rb"))
        if output is not None:
            self.stdout = self._files.enter_context(output.open("wb"))

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._files.close()

    def unstarted(self, returncode: int, message: str) -> ExecResult:
        """Return the result of a process that could not be started."""
        text = f"loop: {message}\n".encode(errors="replace")
        is_merged = self.stderr == subprocess.STDOUT
        return ExecResult(returncode, *((text, b"") if is_merged else (b"", text)))


def start(
    argv: Sequence[str | bytes], cwd: Path, env: dict[str, str], streams: Streams
) -> "subprocess.Popen[bytes] | ExecResult":
    """Return the process, or the result of one that is missing or cannot be executed.

    Raises:
        SandboxError: ``cwd`` is gone, or the machine has no room for a process.
    """
    if not cwd.is_dir():
        raise SandboxError(f"the folder {cwd} is gone")
    name = os.fsdecode(argv[0])
    try:
        with proctree.adoption() as adopt:
            child = subprocess.Popen(
                [_bytes(word) for word in argv],
                cwd=cwd,
                env={_bytes(name): _bytes(value) for name, value in env.items()},
                stdin=streams.stdin,
                stdout=streams.stdout,
                stderr=streams.stderr,
                bufsize=0,
                start_new_session=True,
            )
            adopt(child.pid)
    except (FileNotFoundError, NotADirectoryError):
        return streams.unstarted(NOT_FOUND, f"{name}: not found")
    except (PermissionError, ValueError) as error:
        if isinstance(error, PermissionError) and not _is_on_path(name, env.get("PATH", "")):
            # A folder of the PATH that may not be read hides that the program is nowhere.
            return streams.unstarted(NOT_FOUND, f"{name}: not found")
        return streams.unstarted(NOT_EXECUTABLE, f"{name}: {error}")
    except OSError as error:
        if error.errno not in {errno.ENOEXEC, errno.E2BIG, errno.ELOOP, errno.ENAMETOOLONG}:
            raise SandboxError(f"{name} could not be started: {error.strerror}") from error
        return streams.unstarted(NOT_EXECUTABLE, f"{name}: {error.strerror}")
    return child


def _bytes(word: str | bytes) -> bytes:
    """Return a word as UTF-8, whatever the caller's locale can say."""
    return word if isinstance(word, bytes) else word.encode("utf-8", "surrogateescape")


def _is_on_path(name: str, path: str) -> bool:
    return os.sep in name or any(
        os.path.lexists(Path(folder, name)) for folder in path.split(os.pathsep)
    )


def has_exited(popen: "subprocess.Popen[bytes]") -> bool:
    """Return whether a process has ended; it is not reaped, so its number stays its own."""
    if not hasattr(os, "waitid"):
        return popen.poll() is not None
    options = os.WEXITED | os.WNOHANG | os.WNOWAIT
    try:
        return os.waitid(os.P_PID, popen.pid, options) is not None
    except ChildProcessError:
        return True


class _Child:
    """One started process with its pipes."""

    def __init__(
        self,
        popen: "subprocess.Popen[bytes]",
        stdin: bytes,
        limit: int,
        crowd: Crowd,
        *,
        has_keeper: bool,
    ) -> None:
        self._popen = popen
        self._crowd = crowd
        self._has_keeper = has_keeper
        self._excess = ""
        self._stdin = memoryview(stdin)
        self._selector = selectors.DefaultSelector()
        self._outputs: dict[int, BoundedOutput] = {}
        self._pidfd: int | None = None
        for pipe in (popen.stdout, popen.stderr):
            if pipe is not None:
                os.set_blocking(pipe.fileno(), False)
                self._selector.register(pipe, selectors.EVENT_READ)
                self._outputs[pipe.fileno()] = BoundedOutput(limit)
        self._streams = [
            None if pipe is None else self._outputs[pipe.fileno()]
            for pipe in (popen.stdout, popen.stderr)
        ]
        if popen.stdin is not None:
            os.set_blocking(popen.stdin.fileno(), False)
            self._selector.register(popen.stdin, selectors.EVENT_WRITE)
        if hasattr(os, "pidfd_open"):
            with contextlib.suppress(OSError):
                self._pidfd = os.pidfd_open(popen.pid)
                self._selector.register(self._pidfd, selectors.EVENT_READ)

    def watch(self, deadline: float, cancel: threading.Event | None) -> str:
        """Move bytes until the leader has ended; return "exit", "timeout", "excess" or "cancel".

        The leader's end counts and not the end of its output, which a background process may
        hold open for ever.
        """
        while not has_exited(self._popen):
            if cancel is not None and cancel.is_set():
                self._terminate()
                return "cancel"
            left = deadline - time.monotonic()
            if left <= 0:
                self._terminate()
                return "timeout"
            if excess := self._crowd.excess():
                # No time to be lost: what follows kills it.
                self._excess = excess
                return "excess"
            # Where nothing wakes us at the leader's end or at a cancellation, look often.
            wakes = self._pidfd is not None and cancel is None and not self._crowd.is_watched
            self._pump(left if wakes else min(left, _TICK_S))
        return "exit"

    def finish(self, tag: proctree.Tag | None) -> None:
        """End all that is left of the tree, take the rest of its output, reap the leader."""
        # The leader is not reaped yet, so its number, which is the group's, cannot be another's.
        self._signal(signal.SIGKILL)
        self._await_exit(_GRACE_S)
        self._popen.wait()
        proctree.disown(self._popen.pid)
        proctree.sweep(tag, self._popen.pid)
        deadline = time.monotonic() + _DRAIN_S
        self._close_stdin()
        if self._pidfd is not None:
            self._selector.unregister(self._pidfd)
            os.close(self._pidfd)
        while self._outputs and (left := deadline - time.monotonic()) > 0:
            self._pump(left)
        self._selector.close()
        for pipe in (self._popen.stdout, self._popen.stderr):
            if pipe is not None:
                pipe.close()

    def result(self, begun: float, *, timed_out: bool) -> ExecResult:
        """Return how it ended."""
        # Before their values are taken, which cuts them.
        is_truncated = any(stream.is_truncated for stream in self._streams if stream)
        stdout, stderr = (stream.value() if stream else b"" for stream in self._streams)
        return ExecResult(
            returncode=self._popen.returncode,
            stdout=stdout,
            stderr=stderr,
            duration_ms=int((time.monotonic() - begun) * 1000),
            timed_out=timed_out,
            truncated=is_truncated,
            excess=self._excess,
        )

    def _terminate(self) -> None:
        proctree.ask_to_end(self._popen.pid, has_keeper=self._has_keeper)
        self._await_exit(_GRACE_S)

    def _await_exit(self, seconds: float) -> None:
        deadline = time.monotonic() + seconds
        while not has_exited(self._popen) and (left := deadline - time.monotonic()) > 0:
            self._pump(min(left, _TICK_S))

    def _signal(self, number: signal.Signals) -> None:
        with contextlib.suppress(ProcessLookupError, PermissionError):
            os.killpg(self._popen.pid, number)

    def _pump(self, seconds: float) -> None:
        for key, _ in self._selector.select(seconds):
            if key.fd == self._pidfd:
                continue
            if key.fd in self._outputs:
                self._read(key.fd)
            else:
                self._write(key.fd)

    def _read(self, descriptor: int) -> None:
        try:
            chunk = os.read(descriptor, _CHUNK)
        except BlockingIOError:
            return
        if chunk:
            self._outputs[descriptor].add(chunk)
            return
        self._selector.unregister(descriptor)
        del self._outputs[descriptor]

    def _write(self, descriptor: int) -> None:
        try:
            written = os.write(descriptor, self._stdin[:_CHUNK])
        except BlockingIOError:
            return
        except BrokenPipeError:
            written = len(self._stdin)
        self._stdin = self._stdin[written:]
        if not self._stdin:
            self._close_stdin()

    def _close_stdin(self) -> None:
        pipe = self._popen.stdin
        if pipe is not None and not pipe.closed:
            self._selector.unregister(pipe)
            pipe.close()
