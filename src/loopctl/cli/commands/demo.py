"""``loop demo``: a small real project, driven offline with real tools."""

from pathlib import Path
from typing import Annotated

import typer

from loopctl.cli.driving import drive
from loopctl.cli.opening import Json
from loopctl.cli.output import say

Folder = Annotated[
    Path | None,
    typer.Argument(
        metavar="DIR",
        help="A new or empty folder; a temporary one when left out.",
        show_default=False,
    ),
]


def demo(folder: Folder = None, as_json: Json = False) -> None:
    """Make a small project and drive it offline, with real tools."""
    from loopctl import bootstrap
    from loopctl.domain import RunOptions

    made = bootstrap.create_demo(folder)
    say(f"The demo project is in {made}")
    project = bootstrap.open_project(made)
    drive(
        project,
        lambda listeners, person: project.run(RunOptions(), listeners, person),
        as_json=as_json,
        attended=False,
    )
