"""Where words go: the result to stdout, everything else to stderr, neither ever with a traceback.

A reader that went away (``loop report | head``) ends the output, not the command. What cannot be
written for another reason (a full disk, a closed stream) ends no run either: :func:`emit` says so
at the end, and messages on stderr are given up.
"""

import errno
import io
import json
import os
import sys
from collections.abc import Callable, Mapping
from contextlib import suppress
from pathlib import Path
from typing import Any, TextIO, cast

from loopctl.errors import MachineError
from loopctl.report.escape import visible

_redactor: list[Callable[[str], str] | None] = [None]
"""The one of this process."""


class Outlet(io.TextIOBase):
    """A standard stream whose writes never raise: the first that fails is the last.

    Args:
        stream: ``None`` where it was closed before this process began.

    Attributes:
        fault: Why nothing is written any more; ``None`` as long as all was.
        is_told: The user knows of the fault, and the exit code takes no notice of it.
    """

    def __init__(self, stream: TextIO | None) -> None:
        super().__init__()
        self._stream = stream
        self.fault: OSError | ValueError | None = None
        self.is_told = False
        if stream is None:
            self.fault = OSError(errno.EBADF, "it is closed")
        else:
            _write_any_letter(stream)

    def write(self, text: str) -> int:
        """Write where that is still possible; say that all was written."""
        if self._stream is not None and self.fault is None:
            self.fault = _try(self._stream, text)
        return len(text)

    def flush(self) -> None:
        """Write what is held back, where that is still possible."""
        self.write("")

    def isatty(self) -> bool:
        """Return whether it is a terminal."""
        return self._stream is not None and self._stream.isatty()

    def fileno(self) -> int:
        """Return the file's number.

        Raises:
            OSError: It has none.
        """
        if self._stream is None:
            raise OSError(errno.EBADF, "it is closed")
        return self._stream.fileno()

    def writable(self) -> bool:
        """Return that it takes text."""
        return True

    @property
    def encoding(self) -> str:  # type: ignore[override]  # typeshed has a plain attribute
        """The encoding of what is written."""
        return getattr(self._stream, "encoding", None) or "utf-8"


def outlet(stream: TextIO) -> TextIO:
    """Return a stream to which writing never raises."""
    return stream if isinstance(stream, Outlet) else cast("TextIO", Outlet(stream))


def guard_streams() -> None:
    """Make stdout and stderr such that writing to them never raises, and stdin one to read from.

    A number of theirs that is not open is opened on nothing, lest a file that is opened later, such
    as the database, gets it and is written into.
    """
    for number in range(3):
        try:
            os.fstat(number)
        except OSError:
            os.open(os.devnull, os.O_RDONLY)
    if sys.stdin is None:
        sys.stdin = Path(os.devnull).open(encoding="utf-8")  # noqa: SIM115 - for the whole process
    sys.stdout, sys.stderr = Outlet(sys.stdout), Outlet(sys.stderr)


def fault_of_stdout() -> str:
    """Return why the result could not be written, where the user does not know; else nothing."""
    out = sys.stdout
    if not isinstance(out, Outlet) or out.fault is None or out.is_told:
        return ""
    return "" if isinstance(out.fault, BrokenPipeError) else _why(out.fault)


def emit(text: str) -> None:
    """Write the result to stdout; ``text`` has been made harmless already.

    Raises:
        MachineError: It could not be written.
    """
    fault = write(sys.stdout, text) or getattr(sys.stdout, "fault", None)
    if fault is not None and not isinstance(fault, BrokenPipeError):
        raise MachineError(_why(fault))


def emit_document(document: Mapping[str, Any]) -> None:
    """Write the one document of ``--json`` to stdout, in ASCII.

    Raises:
        MachineError: It could not be written.
    """
    emit(json.dumps(document, indent=2) + "\n")


def say_unwritten(error: MachineError) -> None:
    """Say that the result of a run could not be written; the run's exit code stays."""
    if isinstance(sys.stdout, Outlet):
        sys.stdout.is_told = True
    say(f"loop: {error}")


def say(text: str) -> None:
    """Write a message of one or more lines to stderr, made harmless."""
    write(sys.stderr, visible(text) + "\n")


def write(stream: TextIO | None, text: str) -> OSError | ValueError | None:
    """Write to a stream that may be closed or full, and whose encoding may lack a letter.

    Returns:
        Why it could not be written; ``None`` where it was.
    """
    if stream is None:
        return OSError(errno.EBADF, "it is closed")
    _write_any_letter(stream)
    return _try(stream, text)


def take_out(redact: Callable[[str], str]) -> None:
    """Let ``redact`` take the keys out of all that is written from now on."""
    _redactor[0] = redact


def without_keys(text: str) -> str:
    """Return a text as it may be written; before a project is open only by the usual names."""
    redact = _redactor[0]
    if redact is None:
        from loopctl.redaction import Redactor

        redact = _redactor[0] = Redactor(os.environ)
    return redact(text)


def _try(stream: TextIO, text: str) -> OSError | ValueError | None:
    try:
        stream.write(without_keys(text))
        stream.flush()
    except (OSError, ValueError) as error:
        _silence(stream)
        return error
    return None


def _write_any_letter(stream: TextIO) -> None:
    if isinstance(stream, io.TextIOWrapper) and stream.errors != "backslashreplace":
        with suppress(OSError, ValueError):
            stream.reconfigure(errors="backslashreplace")


def _why(fault: OSError | ValueError) -> str:
    return f"stdout cannot be written: {getattr(fault, 'strerror', None) or fault}"


def _silence(stream: TextIO) -> None:
    """Let what is written later, also at the interpreter's end, go nowhere."""
    with suppress(OSError, ValueError):
        nowhere = os.open(os.devnull, os.O_WRONLY)
        os.dup2(nowhere, stream.fileno())
        os.close(nowhere)


def is_plain(stream: TextIO) -> bool:
    """Return whether control codes must be kept away from ``stream``."""
    if os.environ.get("NO_COLOR") or os.environ.get("TERM") == "dumb":
        return True
    return not stream.isatty()
