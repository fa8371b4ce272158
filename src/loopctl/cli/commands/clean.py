"""``loop clean``: removes what is no longer needed below ``.local/``."""

from typing import TYPE_CHECKING, Annotated, Any

import typer

from loopctl.cli import completion
from loopctl.cli.commands.report import chosen
from loopctl.cli.opening import Directory, Json, opened
from loopctl.cli.output import emit, emit_document
from loopctl.report.escape import one_line
from loopctl.report.wording import counted

if TYPE_CHECKING:
    from loopctl.cleaning import Cleaned

Refs = Annotated[
    list[str] | None,
    typer.Argument(
        metavar="REF...",
        help="Kept trees to forget, landed or not, as `loop recover` lists them.",
        show_default=False,
    ),
]
OfRun = Annotated[
    str | None,
    typer.Option(
        "--run",
        metavar="RUN",
        help="Forget all trees that this run has kept, landed or not.",
        autocompletion=completion.run_ids,
    ),
]
DryRun = Annotated[bool, typer.Option("--dry-run", help="Show what would go; remove nothing.")]


def clean(
    ctx: typer.Context,
    refs: Refs = None,
    run: OfRun = None,
    dry_run: DryRun = False,
    as_json: Json = False,
    directory: Directory = None,
) -> None:
    """Remove what is left of dead processes, and the kept trees of results that have landed.

    A tree that has not landed stays unless it is named; where something is named, nothing else
    is removed.
    """
    project = opened(ctx, directory)
    run_id = chosen(project, run) if run else None
    cleaned = project.clean(tuple(refs or ()), run_id, is_dry=dry_run)
    if as_json:
        emit_document(_document(cleaned, is_dry=dry_run))
    else:
        emit("".join(f"{one_line(line)}\n" for line in _lines(cleaned, is_dry=dry_run)))


def _lines(cleaned: "Cleaned", *, is_dry: bool) -> list[str]:
    gone = "would be removed" if is_dry else "removed"
    lines = [f"{gone}: {ref}" for ref in cleaned.refs]
    lines += [f"{gone}: sandbox {name}" for name in cleaned.sandboxes]
    lines += [f"{gone}: {name}" for name in cleaned.files]
    lines += [f"kept as {ref}: files of a step that was cut short" for ref in cleaned.saved]
    lines += [f"left as it is: {folder}: {why}" for folder, why in cleaned.left]
    if not lines:
        return ["nothing to clean"]
    what = (
        f"{counted(len(cleaned.refs), 'kept tree')}, "
        f"{counted(len(cleaned.sandboxes) + len(cleaned.files), 'leftover')} "
        f"of {_size(cleaned.size_bytes)}"
    )
    return [*lines, f"{'would free' if is_dry else 'freed'}: {what}"]


def _size(size_bytes: int) -> str:
    size = float(size_bytes)
    for unit in ("bytes", "KiB", "MiB"):
        if size < 1024:  # noqa: PLR2004 - what the units are made of
            return f"{size:.0f} {unit}"
        size /= 1024
    return f"{size:.1f} GiB"


def _document(cleaned: "Cleaned", *, is_dry: bool) -> dict[str, Any]:
    return {
        "schema": 1,
        "dry_run": is_dry,
        "refs": list(cleaned.refs),
        "sandboxes": list(cleaned.sandboxes),
        "files": list(cleaned.files),
        "size_bytes": cleaned.size_bytes,
        "saved": list(cleaned.saved),
        "left": [{"folder": folder, "why": why} for folder, why in cleaned.left],
    }
