"""Opens the project that a command works on, and says how commands are written for this reader."""

import shutil
import sys
from collections.abc import Mapping
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from loopctl.cli.checkout import current_branch
from loopctl.cli.group import command_names, directory_of
from loopctl.cli.output import take_out
from loopctl.cli.words import shown
from loopctl.errors import LoopctlError, UsageError

if TYPE_CHECKING:
    from loopctl.bootstrap import Project
    from loopctl.domain import Manifest
    from loopctl.report.commands import Commands

Directory = Annotated[
    Path | None, typer.Option("-C", metavar="DIR", help="Work on the checkout around DIR.")
]
ManifestPath = Annotated[
    Path | None,
    typer.Option("--manifest", metavar="F", help="The manifest, instead of tasks/ACTIVE.toml."),
]
Json = Annotated[bool, typer.Option("--json", help="Print one JSON document.")]


def folder(ctx: typer.Context, own: Path | None) -> Path:
    """Return the folder that ``-C`` names, or the current one.

    Raises:
        UsageError: There is no such folder.
    """
    found = directory_of(ctx, own)
    if not found.is_dir():
        raise UsageError(f"-C {shown(str(found))}: there is no such folder")
    return found


def opened(
    ctx: typer.Context,
    own: Path | None = None,
    manifest: Path | None = None,
    overrides: Mapping[str, object] | None = None,
) -> "Project":
    """Return the project around the folder that the command works in."""
    from loopctl import bootstrap

    project = bootstrap.open_project(folder(ctx, own), manifest=manifest, overrides=overrides)
    take_out(project.redactor())
    return project


def manifest_if_any(project: "Project") -> "Manifest | None":
    """Return the manifest; ``None`` where the file does not exist."""
    return project.load_manifest() if project.manifest.path.exists() else None


def commands_for(project: "Project") -> "Commands":
    """Return how commands are written for whoever started this one.

    The manifest is read when a command is written that depends on it, and then once.
    """
    from loopctl.report.commands import Commands

    @cache
    def ids() -> frozenset[str]:
        try:
            manifest = manifest_if_any(project)
        except LoopctlError:
            return frozenset()
        return frozenset(task.id for task in manifest.tasks) if manifest else frozenset()

    def drawn(run_id: str) -> tuple[str, ...]:
        place = project.place.of_run(run_id)
        if place.own is None:
            return ()
        from loopctl.cli.drawing import words_of

        try:
            return words_of(place.own, place.file.load())
        except LoopctlError:
            return (f"--{place.own.value}",)

    here = Path.cwd().resolve()
    checkout = project.checkout.resolve()
    usual = checkout / "tasks" / "ACTIVE.toml"
    manifest = project.manifest.path.resolve()
    return Commands(
        program=program(),
        directory="" if here == checkout or checkout in here.parents else str(checkout),
        base_branch=current_branch(checkout),
        manifest="" if manifest == usual else str(manifest),
        names=frozenset(command_names()),
        ids=ids,
        drawn=drawn,
    )


def program() -> tuple[str, ...]:
    """Return the words that start ``loop`` from the caller's shell."""
    if shutil.which("loop"):
        return ("loop",)
    for beside in (Path(sys.argv[0]), Path(sys.executable)):
        script = beside.absolute().parent / "loop"
        if script.is_file():
            return (str(script),)
    return (sys.executable, "-m", "loopctl")
