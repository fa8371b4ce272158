"""``loop next``: the tasks that could begin now."""

import typer

from loopctl.cli.opening import Directory, Json, ManifestPath, opened
from loopctl.cli.output import emit, emit_document


def next_tasks(
    ctx: typer.Context,
    manifest: ManifestPath = None,
    as_json: Json = False,
    directory: Directory = None,
) -> None:
    """Show the tasks that could begin now, the next one first."""
    from loopctl.domain import RunOptions
    from loopctl.report.listing import frontier_blocks, prospects_document
    from loopctl.report.plain import to_plain

    project = opened(ctx, directory, manifest)
    prospects, waits = project.prospects(RunOptions())
    ready = tuple(prospect for prospect in prospects if not prospect.waits)
    if as_json:
        emit_document(prospects_document(ready, waits))
    else:
        emit(to_plain(frontier_blocks(ready)))
