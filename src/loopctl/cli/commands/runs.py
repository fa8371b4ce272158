"""``loop runs``: all runs."""

import typer

from loopctl.cli.opening import Directory, Json, opened
from loopctl.cli.output import emit, emit_document


def runs(ctx: typer.Context, as_json: Json = False, directory: Directory = None) -> None:
    """List all runs, the newest first."""
    from loopctl.report.listing import runs_blocks, runs_document
    from loopctl.report.plain import to_plain

    found = opened(ctx, directory).runs()
    if as_json:
        emit_document(runs_document(found))
    else:
        emit(to_plain(runs_blocks(found)))
