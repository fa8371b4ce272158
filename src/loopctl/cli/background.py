"""``--bg``: two processes of ``loop``, one that the user waits for and one that does the work.

The second one checks all that a run in the foreground checks. At the first event, when the run
has begun, it turns to the log of the run and tells the first one, which prints that and ends.
Where it ends before, its message and its exit code are those of the first one.
"""

import json
import os
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any, NoReturn

import typer

from loopctl.cli.group import WORDS
from loopctl.cli.output import emit, emit_document, write
from loopctl.report.escape import one_line, visible

if TYPE_CHECKING:
    from loopctl.bootstrap import Project
    from loopctl.events import AnyEvent

LOG = "log"
"""In the folder of the run: what would stand at the terminal."""


def is_inside() -> bool:
    """Return whether this process is the one that does the work."""
    from loopctl.settings import BACKGROUND, environment

    return BACKGROUND in environment()


def send(ctx: typer.Context, *, as_json: bool) -> NoReturn:
    """Start the second process with this one's words; say which run it drives, and end."""
    from loopctl.bootstrap import begin_in_background

    begun = begin_in_background(ctx.meta[WORDS])
    if begun.returncode is not None:
        write(sys.stderr, visible(begun.output.decode("utf-8", "replace")))
        raise typer.Exit(begun.returncode)
    told: dict[str, Any] = json.loads(begun.line)
    if as_json:
        emit_document({"schema": 1, **told})
    else:
        run, log = one_line(told["run_id"]), one_line(told["log"])
        emit(
            f"run {run} goes on in the background, process {told['pid']}\n"
            f"log: {log}\n"
            f"`loop watch` follows it, `loop pause` ends it after the step under way\n"
        )
    raise typer.Exit(0)


class Handover:
    """A listener that, at the first event, turns this process to its log and tells the first one.

    It must be the first to be called, and raises where the log cannot be opened: nobody would
    read what else is said.
    """

    def __init__(self, project: "Project") -> None:
        """Remember where the folders of runs are."""
        self._project = project
        self._is_done = False

    def __call__(self, event: "AnyEvent") -> None:
        """Take one event; all but the first change nothing."""
        if self._is_done:
            return
        self._is_done = True
        path: Path = self._project.run_folder(event.run) / LOG
        log = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_APPEND | os.O_CLOEXEC, 0o600)
        waiting = os.dup(sys.stdout.fileno())
        for stream in (sys.stdout, sys.stderr):
            stream.flush()
            os.dup2(log, stream.fileno())
        os.close(log)
        told = {"run_id": event.run, "pid": os.getpid(), "log": str(path)}
        with os.fdopen(waiting, "w", encoding="ascii") as first:
            first.write(json.dumps(told) + "\n")
