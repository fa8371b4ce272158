"""``loop status``: how the manifest and the newest run stand; starts no process."""

from typing import TYPE_CHECKING, Any

import typer

from loopctl.cli.checkout import branch_commit, current_branch
from loopctl.cli.opening import (
    Directory,
    Json,
    ManifestPath,
    commands_for,
    manifest_if_any,
    opened,
)
from loopctl.cli.output import emit, emit_document

if TYPE_CHECKING:
    from loopctl.bootstrap import Project
    from loopctl.domain import Decision, Manifest


def status(
    ctx: typer.Context,
    manifest: ManifestPath = None,
    as_json: Json = False,
    directory: Directory = None,
) -> None:
    """Show how the tasks, the newest run and the decisions stand."""
    from loopctl.report.standing import standing_text

    project = opened(ctx, directory, manifest)
    known = manifest_if_any(project)
    decisions = project.decisions()
    document = _document(project, known, decisions)
    if as_json:
        emit_document(document)
    else:
        emit(standing_text(document, decisions, commands_for(project)))


def _document(
    project: "Project", manifest: "Manifest | None", decisions: tuple["Decision", ...]
) -> dict[str, Any]:
    from loopctl.report.wording import decision_document

    counts: dict[str, int] = {}
    for task in manifest.tasks if manifest else ():
        counts[task.status.value] = counts.get(task.status.value, 0) + 1
    owner = project.owner()
    runs = project.runs()
    here, branch = current_branch(project.checkout), project.settings.land.branch
    return {
        "schema": 1,
        "manifest": str(project.manifest.path) if manifest else None,
        "goal": manifest.goal.text if manifest else "",
        "tasks": counts,
        "owner": {"pid": owner[0], "run_id": owner[1]} if owner else None,
        "run": {"run_id": runs[0].id, "status": runs[0].status.value} if runs else None,
        "decisions": [decision_document(one) for one in decisions],
        "branch": {
            "name": branch,
            "commit": branch_commit(project.checkout, branch) or None,
            "current": here or None,
            "current_commit": branch_commit(project.checkout, here) or None,
        },
    }
