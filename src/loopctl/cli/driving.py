"""Drives a run in front of the user: live view, files of the run, report, exit code."""

import gc
import sys
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, NoReturn

import typer

from loopctl.cli.opening import commands_for, manifest_if_any
from loopctl.cli.output import emit, emit_document, is_plain, say, say_unwritten
from loopctl.domain import RunStatus
from loopctl.errors import MachineError

if TYPE_CHECKING:
    from loopctl.bootstrap import Listener, Project
    from loopctl.cli.live import View
    from loopctl.events import AnyEvent, RunEnded
    from loopctl.launch import Ask
    from loopctl.report.commands import Commands
    from loopctl.report.files import RunFiles
    from loopctl.report.summary import RunSummary

Work = Callable[[Sequence["Listener"], "Ask | None"], "RunEnded"]
"""Drives a run to its end, calling the listeners with each event and asking who is there."""


def drive(project: "Project", work: Work, *, as_json: bool, attended: bool) -> NoReturn:
    """Do the work in view of the user, print the result, end with the run's exit code."""
    from loopctl.cli import background
    from loopctl.cli.live import Follower, guarded, live_view
    from loopctl.report.fold import advance
    from loopctl.report.spans import span_listener
    from loopctl.settings import environment

    # Starting is over, where garbage is hardly looked for: a night's worth of it must not pile up.
    # What has been made so far stays, so that looking for garbage later need not go through it.
    gc.collect()
    gc.freeze()
    gc.set_threshold(10_000, 10, 10)
    commands = commands_for(project)
    follower = Follower(project.events)
    files = FilesOfRun(project, commands)
    spans = span_listener(environment())
    first = [background.Handover(project)] if background.is_inside() else []
    with live_view(follower, sys.stderr) as view:
        shown = [guarded(one) for one in (follower, files, view, spans) if one is not None]
        try:
            ended = work([*first, *shown], _asker(view) if attended else None)
        finally:
            files.close()
            if spans is not None:
                spans.close()
    summary = follower.summary
    if summary.ended is None:
        summary = advance(summary, ended)
    if not summary.tasks and summary.scope.is_whole:
        warn_of_no_task(project)
    for fault in (files.fault, spans.fault if spans is not None else None):
        if fault:
            say(f"loop: {fault}")
    try:
        print_summary(summary, commands, as_json=as_json)
    except MachineError as error:
        say_unwritten(error)
    raise typer.Exit(ended.exit_code)


def _asker(view: "View") -> "Ask":
    from loopctl.cli.consent import TerminalConsent

    return lambda cancel: TerminalConsent(sys.stdin, sys.stderr, cancel=cancel, quiet=view.quiet)


def warn_of_no_task(project: "Project") -> None:
    """Say that there is nothing to drive, where the manifest lists no task at all."""
    manifest = manifest_if_any(project)
    if manifest is not None and not manifest.tasks:
        say(f"loop: warning: the manifest lists no task ({project.manifest.path})")


def tell_of_cut_short(project: "Project") -> None:
    """Say how the newest run goes on, where it was cut short and has tasks of its own.

    What is driven next is the manifest, which knows nothing of them.
    """
    newest = next(iter(project.runs()), None)
    if newest is None or newest.status is not RunStatus.INTERRUPTED:
        return
    own = project.place.of_run(newest.id).own
    if own is not None:
        again = commands_for(project).drive("resume", newest.id)
        say(f"loop: run {newest.id} (--{own.value}) was cut short; `{again}` carries it on")


class FilesOfRun:
    """Opens the listener that keeps a run's files once the run has a folder."""

    def __init__(self, project: "Project", commands: "Commands") -> None:
        """Remember where folders of runs are and how commands are written."""
        self._project = project
        self._commands = commands
        self._files: RunFiles | None = None

    def __call__(self, event: "AnyEvent") -> None:
        """Hand the event on."""
        from loopctl.report.files import RunFiles

        if self._files is None:
            self._files = RunFiles(self._project.run_folder(event.run), self._commands)
        self._files(event)

    def close(self) -> None:
        """Write what waits to be written."""
        if self._files is not None:
            self._files.close()

    @property
    def fault(self) -> str | None:
        """Why the files are not current; ``None`` where they are."""
        return self._files.fault if self._files else None


def print_summary(summary: "RunSummary", commands: "Commands", *, as_json: bool) -> None:
    """Write the report of a run to stdout, or its document.

    Raises:
        MachineError: It could not be written.
    """
    from loopctl.report.account import account
    from loopctl.report.summary import to_document

    if as_json:
        emit_document(to_document(summary))
        return
    blocks = account(summary, commands)
    if is_plain(sys.stdout):
        from loopctl.report.plain import to_plain

        emit(to_plain(blocks))
        return
    from loopctl.report.terminal import to_terminal

    emit(to_terminal(blocks))
