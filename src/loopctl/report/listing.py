"""Lists: what would run, the runs so far, how the manifest stands, the story of one task."""

from collections.abc import Iterable, Mapping, Sequence
from types import MappingProxyType
from typing import Any

from loopctl.domain import Decision, Prospect, Wait
from loopctl.records import RunRecord
from loopctl.report.blocks import (
    Block,
    Bullets,
    Heading,
    Item,
    Paragraph,
    Shell,
    plain,
    quiet,
    strong,
)
from loopctl.report.commands import Commands
from loopctl.report.wording import STATUS_WORDS


def ways_on(
    decisions: Iterable[Decision], waits: Iterable[Wait], commands: Commands
) -> Mapping[str, tuple[str, ...]]:
    """Return for each waiting task the commands that answer its open questions."""
    found: dict[str, tuple[str, ...]] = {wait.task: () for wait in waits}
    for one in decisions:
        if one.task in found:
            found[one.task] += (commands.answer(one),)
    return found


def prospects_blocks(
    prospects: Sequence[Prospect],
    waits: Sequence[Wait],
    ways: Mapping[str, tuple[str, ...]] = MappingProxyType({}),
) -> list[Block]:
    """Return what would run, in order, and what the others in scope wait for.

    Args:
        prospects: In the order of work.
        waits: Of the others.
        ways: The commands that get a waiting task going.
    """
    blocks: list[Block] = [Heading(f"Would run ({len(prospects)})")]
    if prospects:
        blocks.append(Bullets(tuple(_prospect(prospect) for prospect in prospects)))
    else:
        blocks.append(Paragraph((plain("Nothing can run now."),)))
    if waits:
        blocks.append(Heading(f"Would wait ({len(waits)})"))
        items = (_wait(wait, ways.get(wait.task, ())) for wait in waits)
        blocks.append(Bullets(tuple(items)))
    return blocks


def _wait(wait: Wait, ways: tuple[str, ...]) -> Item:
    below = (Shell(tuple((command, "") for command in ways)),) if ways else ()
    return Item((strong(wait.task), plain(f": {wait.reason}")), below)


def _prospect(prospect: Prospect) -> Item:
    after = f", after {', '.join(prospect.waits)}" if prospect.waits else ""
    task = prospect.task
    return Item(
        (
            strong(task.id),
            plain(f" {task.title} "),
            quiet(f"({prospect.policy.value}, worker {prospect.worker}{after})"),
        )
    )


def frontier_blocks(ready: Sequence[Prospect]) -> list[Block]:
    """Return the tasks that could begin now."""
    if not ready:
        return [Paragraph((plain("No task could begin now; `loop --dry-run` says why."),))]
    return [Bullets(tuple(_prospect(prospect) for prospect in ready))]


def prospects_document(prospects: Iterable[Prospect], waits: Iterable[Wait]) -> dict[str, Any]:
    """Return the document of ``--dry-run --json`` and ``loop next --json``."""
    return {
        "schema": 1,
        "tasks": [
            {
                "id": prospect.task.id,
                "title": prospect.task.title,
                "worker": prospect.worker,
                "policy": prospect.policy.value,
                "waits": list(prospect.waits),
            }
            for prospect in prospects
        ],
        "waits": [{"task": wait.task, "reason": wait.reason} for wait in waits],
    }


def runs_blocks(runs: Sequence[RunRecord]) -> list[Block]:
    """Return all runs, the newest first."""
    if not runs:
        return [Paragraph((plain("No run yet; `loop` begins one."),))]
    return [Bullets(tuple(_run(record) for record in runs))]


def _run(record: RunRecord) -> Item:
    times = f" ({record.started} to {record.ended or 'now'})"
    goal = f" {record.goal}" if record.goal else ""
    return Item(
        (strong(record.id), plain(f" {STATUS_WORDS[record.status]}"), quiet(times), plain(goal))
    )


def runs_document(runs: Iterable[RunRecord]) -> dict[str, Any]:
    """Return the document of ``loop runs --json``."""
    return {
        "schema": 1,
        "runs": [
            {
                "run_id": record.id,
                "status": record.status.value,
                "goal": record.goal,
                "base": record.base,
                "branch": record.branch,
                "started": record.started,
                "ended": record.ended,
            }
            for record in runs
        ],
    }


Kept = tuple[str, str, bool]
"""A ref, its commit, and whether the same result has landed."""


def kept_blocks(kept: Sequence[Kept]) -> list[Block]:
    """Return the trees that are kept."""
    if not kept:
        return [Paragraph((plain("Nothing is kept."),))]
    items = (
        Item((plain(ref), quiet(f" {commit[:10]}{' (landed)' if landed else ''}")))
        for ref, commit, landed in kept
    )
    return [Bullets(tuple(items))]


def kept_document(kept: Iterable[Kept]) -> dict[str, Any]:
    """Return the document of ``loop recover --json``."""
    rows = [{"ref": ref, "commit": commit, "landed": landed} for ref, commit, landed in kept]
    return {"schema": 1, "kept": rows}
