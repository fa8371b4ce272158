"""``loop capsule``: the thread of a run, as it is re-read after any crash, clear or answer."""

from typing import Annotated

import typer

from loopctl.cli.commands.report import RunId, chosen
from loopctl.cli.opening import Directory, opened
from loopctl.cli.output import emit
from loopctl.errors import UsageError

Export = Annotated[
    bool,
    typer.Option(
        "--export", help="Print JSON lines for a bulk upsert; the same entries have the same ids."
    ),
]


def capsule(
    ctx: typer.Context, run: RunId = None, export: Export = False, directory: Directory = None
) -> None:
    """Show the capsule of a run: its goal, what is next, what was decided, assumed and asked."""
    from loopctl.context.capsule import read
    from loopctl.context.export import to_json_lines

    project = opened(ctx, directory)
    run_id = chosen(project, run)
    path = project.run_folder(run_id) / "context.md"
    try:
        text, found = read(path)
    except FileNotFoundError as error:
        raise UsageError(f"run {run_id} has no capsule; its tasks were never begun") from error
    except (OSError, ValueError, KeyError) as error:
        raise UsageError(f"the capsule {path} cannot be read: {error}") from error
    emit(to_json_lines(found, run_id) if export else text)
