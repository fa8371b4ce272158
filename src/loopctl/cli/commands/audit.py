"""``loop audit verify``: whether the audit chains of runs are whole."""

from enum import StrEnum
from typing import TYPE_CHECKING, Annotated, Any, Final

import typer

from loopctl.cli.commands.metrics import EachRun
from loopctl.cli.commands.report import chosen
from loopctl.cli.opening import Directory, Json, opened
from loopctl.cli.output import emit, emit_document
from loopctl.report.escape import one_line

if TYPE_CHECKING:
    from loopctl.store.auditcheck import Checked

BROKEN: Final = 4
"""Nothing is wrong with the command; what it looked at needs a person, and asks nothing."""


class Action(StrEnum):
    """What can be done with audit chains."""

    VERIFY = "verify"


What = Annotated[Action, typer.Argument(metavar="verify", help="Look for changed lines.")]


def audit(
    ctx: typer.Context,
    action: What,
    run: EachRun = None,
    as_json: Json = False,
    directory: Directory = None,
) -> None:
    """Check that no line of a run's audit.jsonl was changed, dropped, inserted or moved.

    Exit code 4 where one was.
    """
    del action
    project = opened(ctx, directory)
    found = project.audit(chosen(project, run) if run else None)
    if as_json:
        emit_document({"schema": 1, "runs": [_document(*one) for one in found.items()]})
    else:
        emit("".join(_line(*one) for one in found.items()) or "no run yet\n")
    if any(checked is not None and checked.flaw is not None for checked in found.values()):
        raise typer.Exit(BROKEN)


def _line(run_id: str, checked: "Checked | None") -> str:
    if checked is None:
        return f"{run_id}: its folder is gone; nothing to check\n"
    if checked.flaw is not None:
        return f"{run_id}: BROKEN\n{one_line(str(checked.flaw))}\n"
    return f"{run_id}: OK, {checked.entries} entries, the last {checked.head[:16]}\n"


def _document(run_id: str, checked: "Checked | None") -> dict[str, Any]:
    if checked is None:
        return {"run_id": run_id, "ok": None, "entries": 0, "head": None, "flaw": None}
    flaw = checked.flaw
    return {
        "run_id": run_id,
        "ok": flaw is None,
        "entries": checked.entries,
        "head": checked.head,
        "flaw": flaw
        and {"path": str(flaw.path), "line": flaw.line, "kind": flaw.kind, "why": flaw.why},
    }
