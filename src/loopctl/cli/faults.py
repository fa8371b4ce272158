"""The single place where an exception becomes a message and an exit code."""

import json
import os
import re
import sys
import tempfile
import traceback
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import typer
from typer._click.exceptions import ClickException

from loopctl.cli.output import fault_of_stdout, say, without_keys, write
from loopctl.disk import describe, is_machines_fault
from loopctl.errors import LoopctlError, MachineError

INTERNAL_FAULT = 1
INTERRUPTED = 130


@contextmanager
def exit_codes(directory: Path, *, as_json: bool = False) -> Iterator[None]:
    """End the command with the exit code of what was raised inside, and one message on stderr.

    Args:
        directory: Where the command works; a trace of a bug goes to its ``.local/crash/``.
        as_json: The message stands in a document on stdout as well.
    """
    try:
        yield
    except (typer.Exit, typer.Abort):
        raise
    except ClickException as error:
        if as_json:
            _document("usage", error.format_message(), error.exit_code)
        raise
    except KeyboardInterrupt as error:
        if as_json:
            _document("interrupted", "interrupted", INTERRUPTED)
        raise typer.Exit(INTERRUPTED) from error
    except BrokenPipeError as error:
        raise typer.Exit(0) from error
    except Exception as error:
        kind, message, code = _told(error, directory)
        say(f"loop: {message}")
        if as_json:
            _document(kind, message, code)
        raise typer.Exit(code) from error


@contextmanager
def settled() -> Iterator[None]:
    """See to it that a command whose result could not be written does not end with 0 in silence."""
    try:
        yield
    except SystemExit as end:
        fault = fault_of_stdout()
        if fault and not end.code:
            say(f"loop: {fault}")
            raise SystemExit(MachineError.exit_code) from end
        raise


def _told(error: Exception, directory: Path) -> tuple[str, str, int]:
    """Return kind, message and exit code of what was raised."""
    if isinstance(error, LoopctlError):
        name = type(error).__name__.removesuffix("Error")
        return re.sub(r"(?<=[a-z])(?=[A-Z])", "_", name).lower(), str(error), error.exit_code
    if is_machines_fault(error):
        return "machine", describe(error), MachineError.exit_code
    where = _keep(directory)
    message = f"internal fault ({type(error).__name__}), a bug; the trace is in {where}"
    return "internal_fault", message, INTERNAL_FAULT


def _document(kind: str, message: str, code: int) -> None:
    document = {"schema": 1, "error": {"kind": kind, "message": message}, "exit_code": code}
    write(sys.stdout, json.dumps(document, indent=2) + "\n")


def _keep(directory: Path) -> str:
    """Write the trace of the exception under way; return where it is."""
    text = f"argv: {sys.argv!r}\npython: {sys.version}\n\n{traceback.format_exc()}"
    for folder in (_crash_folder(directory), Path(tempfile.gettempdir())):
        if folder is None:
            continue
        try:
            folder.mkdir(mode=0o700, exist_ok=True)
            text = without_keys(text)
            descriptor, name = tempfile.mkstemp(".txt", "loop-crash-", folder)
            with os.fdopen(descriptor, "w", encoding="utf-8", errors="backslashreplace") as file:
                file.write(text)
        except OSError:
            continue
        return name
    return "no file, since none could be written"


def _crash_folder(directory: Path) -> Path | None:
    """``.local/crash`` of the checkout around ``directory``; ``None`` where ``loop`` never ran."""
    for folder in (directory, *directory.parents):
        if (folder / ".git").exists() and (folder / ".local").is_dir():
            return folder / ".local" / "crash"
    return None
