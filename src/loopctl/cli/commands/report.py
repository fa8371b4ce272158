"""``loop report``: the decisions report and the account of a run."""

from enum import StrEnum
from typing import TYPE_CHECKING, Annotated

import typer

from loopctl.cli import completion
from loopctl.cli.driving import print_summary
from loopctl.cli.opening import Directory, Json, ManifestPath, commands_for, opened
from loopctl.cli.output import emit
from loopctl.cli.words import shown, suggestion
from loopctl.errors import UsageError

if TYPE_CHECKING:
    from loopctl.bootstrap import Project
    from loopctl.report.commands import Commands
    from loopctl.report.summary import RunSummary


class Format(StrEnum):
    """How a report is printed."""

    TERMINAL = "terminal"
    MD = "md"
    JSON = "json"
    HTML = "html"


RunId = Annotated[
    str | None,
    typer.Argument(
        metavar="RUN",
        help="A run's id; the newest run when left out.",
        autocompletion=completion.run_ids,
        show_default=False,
    ),
]
ReportFormat = Annotated[
    Format | None,
    typer.Option(
        "--format",
        metavar="F",
        help="terminal (the default), md, json or html.",
        show_default=False,
    ),
]


def report(
    ctx: typer.Context,
    run: RunId = None,
    form: ReportFormat = None,
    manifest: ManifestPath = None,
    as_json: Json = False,
    directory: Directory = None,
) -> None:
    """Print the decisions report and the account of a run."""
    from loopctl.report.fold import summarize

    if as_json and form not in {None, Format.JSON}:
        raise UsageError(f"--format {form} and --json ask for two things; give one of them")
    project = opened(ctx, directory, manifest)
    summary = summarize(project.events(chosen(project, run)))
    _print(summary, commands_for(project), Format.JSON if as_json else form or Format.TERMINAL)


def _print(summary: "RunSummary", commands: "Commands", form: Format) -> None:
    from loopctl.report.account import account, title

    if form is Format.MD:
        from loopctl.report.markdown import to_markdown

        emit(to_markdown(account(summary, commands)))
    elif form is Format.HTML:
        from loopctl.report.html import to_html

        emit(to_html(account(summary, commands), title(summary)))
    else:
        print_summary(summary, commands, as_json=form is Format.JSON)


def chosen(project: "Project", run: str | None) -> str:
    """Return the id of the run that is meant: the one named, or the newest.

    Raises:
        UsageError: There is no such run, or none at all.
    """
    ids = [record.id for record in project.runs()]
    if not ids:
        raise UsageError("there is no run yet; `loop` begins one")
    if run is None:
        return ids[0]
    if run not in ids:
        raise UsageError(f"{shown(run)} is no run{suggestion(run, ids)}; `loop runs` lists them")
    return run
