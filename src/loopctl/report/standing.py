"""How the manifest and the newest run stand, as ``loop status`` shows it.

Lines are made here directly, without the blocks of the larger reports, so that it starts fast.
"""

from collections.abc import Iterable, Mapping
from typing import Any

from loopctl.domain import Decision, RunStatus
from loopctl.report.commands import Commands
from loopctl.report.escape import one_line, visible
from loopctl.report.wording import STATUS_WORDS, rank


def standing_text(
    document: Mapping[str, Any], decisions: Iterable[Decision], commands: Commands
) -> str:
    """Return the document of ``loop status --json`` for a reader, and how to answer."""
    told = (_manifest(document), _run(document), *_branch(document, commands))
    lines = [visible(line) for line in told]
    asked = sorted(decisions, key=rank)
    if asked:
        lines += ["", f"Open decisions ({len(asked)})"]
    for one in asked:
        lines.append(one_line(f"- {one.id} [{one.kind.value}] {one.question}"))
        lines.append(f"  {visible(commands.answer(one))}")
    return "".join(f"{line}\n" for line in lines)


def _manifest(document: Mapping[str, Any]) -> str:
    if document["manifest"] is None:
        return "There is no manifest here; `loop init` writes an example."
    counts = [f"{number} {state}" for state, number in document["tasks"].items()]
    return f"Tasks: {', '.join(counts) or 'none'}"


def _run(document: Mapping[str, Any]) -> str:
    owner, run = document["owner"], document["run"]
    if owner and not owner["run_id"]:
        return f"Process {owner['pid']} is about to begin a run."
    if owner:
        return f"Process {owner['pid']} is driving run {owner['run_id']}."
    if run is None:
        return "No run yet; `loop` begins one."
    return f"Newest run: {run['run_id']}, {STATUS_WORDS[RunStatus(run['status'])]}."


def _branch(document: Mapping[str, Any], commands: Commands) -> list[str]:
    branch = document["branch"]
    if branch["commit"] is None:
        return []
    if branch["commit"] == branch["current_commit"]:
        return [f"{branch['name']} and {branch['current']} are at the same commit."]
    here = branch["current"] or "HEAD"
    line = (
        f"{branch['name']} is at {branch['commit'][:10]}, another commit than {here}; "
        f"`{commands.loop('land')}` takes it over where it can be fast-forwarded."
    )
    return [line]
