"""The Typer application: which command is which, and the options before them."""

from typing import Annotated

import typer

from loopctl import __version__
from loopctl.cli.commands import (
    answer,
    demo,
    doctor,
    frontier,
    init,
    land,
    recover,
    report,
    resume,
    run,
    runs,
    show,
    status,
    worker,
)
from loopctl.cli.group import DEFAULT, DIRECTORY, LoopGroup, RunCommand
from loopctl.cli.opening import Directory
from loopctl.cli.output import emit

app = typer.Typer(
    name="loop",
    cls=LoopGroup,
    rich_markup_mode=None,
    pretty_exceptions_enable=False,
    subcommand_metavar="[TASK...] | COMMAND [ARGS]...",
    context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 100},
    help=(
        "Drive the tasks of tasks/ACTIVE.toml and land only what a gate has passed.\n\n"
        "`loop` drives the whole manifest, `loop T440 T447` a subset, `loop --area import` a tag. "
        "A first word that names a command is that command."
    ),
    epilog=(
        "Exit codes: 0 done, 1 a bug, 2 bad usage, manifest or settings, 3 decisions needed, "
        "4 stuck or blocked, 5 the run's budget is spent, 130 interrupted."
    ),
)


def _version(value: bool) -> None:
    if value:
        emit(f"loop {__version__}\n")
        raise typer.Exit


@app.callback()
def main(
    ctx: typer.Context,
    directory: Directory = None,
    version: Annotated[  # noqa: ARG001 - its callback has printed it already
        bool, typer.Option("--version", callback=_version, is_eager=True, help="Show the version.")
    ] = False,
) -> None:
    """Remember what the options before the command say."""
    ctx.meta[DIRECTORY] = directory


app.command(DEFAULT, cls=RunCommand)(run.run)
app.command("answer")(answer.answer)
app.command("status")(status.status)
app.command("next")(frontier.next_tasks)
app.command("show")(show.show)
app.command("runs")(runs.runs)
app.command("report")(report.report)
app.command("resume")(resume.resume)
app.command("land")(land.land)
app.command("recover")(recover.recover)
app.command("init")(init.init)
app.command("doctor")(doctor.doctor)
app.command("demo")(demo.demo)
app.command("defer")(worker.defer)
app.command("fork")(worker.fork)
app.command("todo-done")(worker.todo_done)
