"""``loop metrics``: what happened, for Prometheus."""

from typing import Annotated

import typer

from loopctl.cli import completion
from loopctl.cli.commands.report import chosen
from loopctl.cli.opening import Directory, opened
from loopctl.cli.output import emit

EachRun = Annotated[
    str | None,
    typer.Argument(
        metavar="RUN",
        help="A run's id; all runs together when left out.",
        autocompletion=completion.run_ids,
        show_default=False,
    ),
]


def metrics(ctx: typer.Context, run: EachRun = None, directory: Directory = None) -> None:
    """Print the metrics of all runs together, or of one, in the text format of Prometheus."""
    from loopctl.report.metrics import metrics_text

    project = opened(ctx, directory)
    ids = [chosen(project, run)] if run else [record.id for record in project.runs()]
    emit(metrics_text(project.events(run_id) for run_id in ids))
