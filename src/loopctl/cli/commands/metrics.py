"""``loop metrics``: what happened, for Prometheus."""

from typing import TYPE_CHECKING, Annotated

import typer

from loopctl.cli import completion
from loopctl.cli.commands.report import chosen
from loopctl.cli.opening import Directory, opened
from loopctl.cli.output import emit, say
from loopctl.errors import StoreError

if TYPE_CHECKING:
    from loopctl.bootstrap import Project
    from loopctl.events import AnyEvent

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
    told = [events for run_id in ids if (events := _told(project, run_id, is_named=bool(run)))]
    emit(metrics_text(told))


def _told(project: "Project", run_id: str, *, is_named: bool) -> "tuple[AnyEvent, ...]":
    """Return the events of a run; one that cannot be read is left out of the sum of all, and said.

    Raises:
        StoreError: It was asked for by name.
    """
    try:
        return tuple(project.events(run_id))
    except StoreError as error:
        if is_named:
            raise
        say(f"loop: {run_id} is left out: {error}")
        return ()
