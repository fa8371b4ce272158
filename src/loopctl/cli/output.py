"""Where words go: the result to stdout, everything else to stderr, neither ever with a traceback.

A reader that went away (``loop report | head``) ends the output, not the command.
"""

import io
import json
import os
import sys
from collections.abc import Mapping
from typing import Any, TextIO

from loopctl.report.escape import visible


def emit(text: str) -> None:
    """Write the result to stdout; ``text`` has been made harmless already."""
    write(sys.stdout, text)


def emit_document(document: Mapping[str, Any]) -> None:
    """Write the one document of ``--json`` to stdout, in ASCII."""
    write(sys.stdout, json.dumps(document, indent=2) + "\n")


def say(text: str) -> None:
    """Write a message of one or more lines to stderr, made harmless."""
    write(sys.stderr, visible(text) + "\n")


def write(stream: TextIO, text: str) -> None:
    """Write to a stream whose reader may be gone and whose encoding may lack a letter."""
    if isinstance(stream, io.TextIOWrapper) and stream.errors == "strict":
        stream.reconfigure(errors="backslashreplace")
    try:
        stream.write(text)
        stream.flush()
    except BrokenPipeError:
        _silence(stream)


def _silence(stream: TextIO) -> None:
    """Let what is written later, also at the interpreter's end, go nowhere."""
    try:
        nowhere = os.open(os.devnull, os.O_WRONLY)
        os.dup2(nowhere, stream.fileno())
        os.close(nowhere)
    except (OSError, ValueError):
        return


def is_plain(stream: TextIO) -> bool:
    """Return whether control codes must be kept away from ``stream``."""
    if os.environ.get("NO_COLOR") or os.environ.get("TERM") == "dumb":
        return True
    return not stream.isatty()
