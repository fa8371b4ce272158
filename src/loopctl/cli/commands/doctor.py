"""``loop doctor``: the machine's tools, and every setting with where it comes from."""

from typing import TYPE_CHECKING

import typer

from loopctl.cli.opening import Directory, Json, ManifestPath, folder
from loopctl.cli.output import emit, emit_document

if TYPE_CHECKING:
    from loopctl.bootstrap import Diagnosis

FAULTY = 2


def doctor(
    ctx: typer.Context,
    manifest: ManifestPath = None,
    as_json: Json = False,
    directory: Directory = None,
) -> None:
    """Show the tools found and each setting with its origin."""
    from loopctl import bootstrap

    found = bootstrap.diagnose(folder(ctx, directory), manifest=manifest)
    if as_json:
        emit_document(_document(found))
    else:
        emit(_text(found))
    raise typer.Exit(FAULTY if found.faults else 0)


def _document(found: "Diagnosis") -> dict[str, object]:
    settings = {one.name: {"value": one.value, "origin": one.origin} for one in found.settings}
    tools = dict(found.tools)
    return {"schema": 1, "tools": tools, "faults": list(found.faults), "settings": settings}


def _text(found: "Diagnosis") -> str:
    from loopctl.report.escape import one_line

    wide = max((len(one.name) for one in found.settings), default=0)
    lines = [
        f"{'!' if name in found.faults else ' '} {name}: {one_line(told)}"
        for name, told in found.tools
    ]
    lines += [
        f"  {one.name:{wide}}  {one_line(one.value)}  ({one_line(one.origin)})"
        for one in found.settings
    ]
    return "".join(f"{line}\n" for line in lines)
