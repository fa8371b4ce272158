"""``loop resume``: carries a run on."""

import sys

import typer

from loopctl.cli import background
from loopctl.cli.commands.report import RunId, chosen
from loopctl.cli.commands.run import Background
from loopctl.cli.driving import drive
from loopctl.cli.opening import Directory, Json, ManifestPath, opened


def resume(
    ctx: typer.Context,
    run: RunId = None,
    bg: Background = False,
    manifest: ManifestPath = None,
    as_json: Json = False,
    directory: Directory = None,
) -> None:
    """Carry on a run; the newest that has something left."""
    project = opened(ctx, directory, manifest)
    run_id = chosen(project, run) if run else None
    if bg and not background.is_inside():
        background.send(ctx, as_json=as_json)
    drive(
        project,
        lambda listeners, person: project.resume(run_id, listeners, person),
        as_json=as_json,
        attended=sys.stdin.isatty(),
    )
