"""``loop watch``: follows a run that another process drives."""

import sys
from threading import Event
from typing import TYPE_CHECKING, Final

import typer

from loopctl.cli.commands.report import RunId, chosen
from loopctl.cli.driving import print_summary
from loopctl.cli.opening import Directory, Json, ManifestPath, commands_for, opened
from loopctl.cli.output import say
from loopctl.errors import UsageError

if TYPE_CHECKING:
    from loopctl.bootstrap import Listener, Project
    from loopctl.cli.live import Follower

INTERRUPTED: Final = 130
"""Of a run whose process has ended without ending the run."""

_LOOK_S: Final = 0.2


def watch(
    ctx: typer.Context,
    run: RunId = None,
    manifest: ManifestPath = None,
    as_json: Json = False,
    directory: Directory = None,
) -> None:
    """Follow a run, the one under way or the newest, and end with its exit code.

    Ctrl-C ends the watching and leaves the run alone.
    """
    from loopctl.cli.live import Follower, live_view

    project = opened(ctx, directory, manifest)
    run_id = meant(project, run)
    follower = Follower(project.events)
    with live_view(follower, sys.stderr) as view:
        follow(project, run_id, follower, view)
    summary = follower.summary
    print_summary(summary, commands_for(project), as_json=as_json)
    if summary.ended is None or summary.exit_code is None:
        say(f"loop: the process that drove run {run_id} is gone; `loop resume` carries on")
        raise typer.Exit(INTERRUPTED)
    raise typer.Exit(summary.exit_code)


def meant(project: "Project", run: str | None) -> str:
    """Return the id of the run that is named, else of the one under way, else of the newest.

    Raises:
        UsageError: There is no such run, or none at all, or one is about to begin.
    """
    owner = project.owner()
    if run is None and owner is not None:
        if not owner[1]:
            raise UsageError(
                f"process {owner[0]} is about to begin a run, of which there is nothing to see "
                "yet; run this again in a moment, or name another run"
            )
        return owner[1]
    return chosen(project, run)


def follow(project: "Project", run_id: str, follower: "Follower", view: "Listener") -> None:
    """Show the run from its newest beginning on, until nobody drives it and all is shown."""
    from loopctl.events import RunResumed, RunStarted

    tail = project.tail(run_id)
    events = tail.read()
    begun = [at for at, event in enumerate(events) if isinstance(event, RunStarted | RunResumed)]
    for event in events[: begun[-1] if begun else 0]:
        follower(event)
    new = events[begun[-1] if begun else 0 :]
    pause = Event()
    while True:
        for event in new:
            follower(event)
            view(event)
        # Asked before reading, so that nothing which was written before the end is missed.
        is_driven = project.is_driven(run_id)
        new = tail.read()
        if not new and not is_driven:
            return
        if not new:
            pause.wait(_LOOK_S)
