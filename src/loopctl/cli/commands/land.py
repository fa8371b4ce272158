"""``loop land``: takes what landed onto the user's branch."""

import typer

from loopctl.cli.opening import Directory, Json, opened
from loopctl.cli.output import emit, emit_document
from loopctl.report.escape import one_line
from loopctl.report.wording import counted


def land(ctx: typer.Context, as_json: Json = False, directory: Directory = None) -> None:
    """Fast-forward the current branch to what landed, or say why not."""
    done = opened(ctx, directory).land()
    if as_json:
        document = {"branch": done.branch, "old": done.old, "new": done.new}
        emit_document({"schema": 1, **document, "commits": done.commits, "files": done.files})
    elif done.files:
        emit(f"The run's changes are in {counted(done.files, 'file')} of the checkout.\n")
    elif done.commits:
        emit(
            f"{one_line(done.branch)}: {done.old[:10]} -> {done.new[:10]}, {counted(done.commits, 'commit')}\n"
        )
    else:
        emit(f"{one_line(done.branch)} has everything already.\n")
