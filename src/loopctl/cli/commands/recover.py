"""``loop recover``: what is kept of every attempt, and how it comes back as a branch."""

import re
from typing import Annotated, Final

import typer

from loopctl.cli.opening import Directory, Json, opened
from loopctl.cli.output import emit, emit_document
from loopctl.cli.words import shown, suggestion
from loopctl.errors import UsageError
from loopctl.report.escape import one_line

Ref = Annotated[
    str | None,
    typer.Argument(metavar="REF", help="A kept tree, as listed.", show_default=False),
]
Branch = Annotated[
    str | None, typer.Option("--branch", metavar="NAME", help="The new branch for the kept tree.")
]

_USAGE: Final = "a kept tree comes back as a branch: loop recover REF --branch NAME"
_SHADOW: Final = re.compile(
    r"@|([A-Z]+_)*HEAD|(refs|heads|tags|remotes)/.*|[0-9a-f]{40}|[0-9a-f]{64}"
)
"""What git itself reads in another way than as the name of a branch."""


def recover(
    ctx: typer.Context,
    ref: Ref = None,
    branch: Branch = None,
    as_json: Json = False,
    directory: Directory = None,
) -> None:
    """List the kept trees, or bring one back as a branch."""
    from loopctl.report.listing import kept_blocks, kept_document
    from loopctl.report.plain import to_plain

    if ref is None and branch is not None:
        raise UsageError(f"--branch {shown(branch)}: {_USAGE}")
    if branch is not None:
        _refuse_shadow(branch)
    project = opened(ctx, directory)
    kept = tuple((one.ref, one.commit, one.landed) for one in project.kept())
    if ref is not None:
        refs = [one[0] for one in kept]
        if ref not in refs:
            raise UsageError(f"{shown(ref)} is not kept{suggestion(ref, refs)}; see `loop recover`")
        if branch is None:
            raise UsageError(_USAGE)
        commit = project.recover(ref, branch)
        emit(f"{one_line(branch)} is at {commit[:10]}: git switch {one_line(branch)}\n")
    elif as_json:
        emit_document(kept_document(kept))
    else:
        emit(to_plain(kept_blocks(kept)))


def _refuse_shadow(branch: str) -> None:
    if _SHADOW.fullmatch(branch):
        raise UsageError(
            f"--branch {shown(branch)}: git reads that as something else than a branch; "
            "choose another name"
        )
