"""How the manifest and the newest run stand, as ``loop status`` shows it."""

from collections.abc import Mapping, Sequence
from typing import Any

from loopctl.domain import Decision, RunStatus
from loopctl.report.account import STATUS_WORDS
from loopctl.report.blocks import Block, Bullets, Heading, Item, Paragraph, Shell, plain, strong
from loopctl.report.commands import Commands
from loopctl.report.decisions import ordered


def standing_blocks(
    document: Mapping[str, Any], decisions: Sequence[Decision], commands: Commands
) -> list[Block]:
    """Return the document of ``loop status --json`` for a reader."""
    lines = [_manifest(document), _run(document), *_branch(document, commands)]
    blocks: list[Block] = [Paragraph((plain(line),)) for line in lines]
    if decisions:
        blocks.append(Heading(f"Open decisions ({len(decisions)})"))
        blocks.append(Bullets(tuple(_decision(one, commands) for one in ordered(decisions))))
    return blocks


def _manifest(document: Mapping[str, Any]) -> str:
    if document["manifest"] is None:
        return "There is no manifest here; `loop init` writes an example."
    counts = [f"{number} {state}" for state, number in document["tasks"].items()]
    return f"Tasks: {', '.join(counts) or 'none'}"


def _run(document: Mapping[str, Any]) -> str:
    owner, run = document["owner"], document["run"]
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


def _decision(decision: Decision, commands: Commands) -> Item:
    line = (strong(decision.id), plain(f" [{decision.kind.value}] {decision.question}"))
    return Item(line, (Shell(((commands.answer(decision), ""),)),))
