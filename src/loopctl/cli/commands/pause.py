"""``loop pause``: asks a run to issue no further step."""

import typer

from loopctl.cli.commands.report import RunId, chosen
from loopctl.cli.opening import Directory, Json, opened
from loopctl.cli.output import emit, emit_document
from loopctl.errors import UsageError


def pause(
    ctx: typer.Context, run: RunId = None, as_json: Json = False, directory: Directory = None
) -> None:
    """Ask the run under way to end after the steps that are being taken; `loop resume` goes on."""
    project = opened(ctx, directory)
    run_id = chosen(project, run) if run else None
    owner = project.owner()
    if owner is None or not owner[1]:
        raise UsageError("no run is under way; there is nothing to pause")
    pid, driven = owner
    if run_id not in {None, driven}:
        raise UsageError(f"run {run_id} is not under way, run {driven} is; nothing was paused")
    project.pause(driven)
    if as_json:
        emit_document({"schema": 1, "run_id": driven, "pid": pid})
    else:
        emit(f"run {driven} ends after the steps that are being taken; `loop resume` carries on\n")
