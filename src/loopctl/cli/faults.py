"""The single place where an exception becomes a message and an exit code."""

import os
import sys
import tempfile
import traceback
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import typer
from typer._click.exceptions import ClickException

from loopctl.cli.output import say
from loopctl.disk import describe, is_machines_fault
from loopctl.errors import LoopctlError, MachineError

INTERNAL_FAULT = 1
INTERRUPTED = 130


@contextmanager
def exit_codes(directory: Path) -> Iterator[None]:
    """End the command with the exit code of what was raised inside, and one message on stderr.

    Args:
        directory: Where the command works; a trace of a bug goes to its ``.local/crash/``.
    """
    try:
        yield
    except (typer.Exit, typer.Abort, ClickException):
        raise
    except LoopctlError as error:
        say(f"loop: {error}")
        raise typer.Exit(error.exit_code) from error
    except KeyboardInterrupt as error:
        raise typer.Exit(INTERRUPTED) from error
    except BrokenPipeError as error:
        raise typer.Exit(0) from error
    except Exception as error:
        if is_machines_fault(error):
            say(f"loop: {describe(error)}")
            raise typer.Exit(MachineError.exit_code) from error
        say(
            f"loop: internal fault ({type(error).__name__}), a bug; the trace is in {_keep(directory)}"
        )
        raise typer.Exit(INTERNAL_FAULT) from error


def _keep(directory: Path) -> str:
    """Write the trace of the exception under way; return where it is."""
    text = f"argv: {sys.argv!r}\npython: {sys.version}\n\n{traceback.format_exc()}"
    for folder in (_crash_folder(directory), Path(tempfile.gettempdir())):
        if folder is None:
            continue
        try:
            folder.mkdir(mode=0o700, exist_ok=True)
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
