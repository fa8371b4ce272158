"""The Typer application: which command is which, and the options before them."""

import importlib
import sys
from collections.abc import Sequence
from typing import Annotated

import typer

from loopctl import __version__
from loopctl.cli.group import DEFAULT, DIRECTORY, LoopGroup, RunCommand
from loopctl.cli.opening import Directory
from loopctl.cli.output import write
from loopctl.cli.table import COMMANDS


def build(words: Sequence[str] = ()) -> typer.Typer:
    """Return the application.

    Args:
        words: Of the command line. Where the first names a command, only that one is made:
            making all of them takes longer than most of them run.
    """
    app = _bare()
    app.callback()(main)
    for name in words[:1] if words and words[0] in COMMANDS else COMMANDS:
        _command(app, name)
    return app


def _bare() -> typer.Typer:
    return typer.Typer(
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
        write(sys.stdout, f"loop {__version__}\n")
        raise typer.Exit


def main(
    ctx: typer.Context,
    directory: Directory = None,
    version: Annotated[  # noqa: ARG001 - its callback has printed it already
        bool, typer.Option("--version", callback=_version, is_eager=True, help="Show the version.")
    ] = False,
) -> None:
    """Remember what the options before the command say."""
    ctx.meta[DIRECTORY] = directory


def _command(app: typer.Typer, name: str) -> None:
    module, function = COMMANDS[name]
    made = getattr(importlib.import_module(f"loopctl.cli.commands.{module}"), function)
    app.command(name, cls=RunCommand if name == DEFAULT else None)(made)
