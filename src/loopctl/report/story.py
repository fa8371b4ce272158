"""The story of one task over all runs, as ``loop show`` tells it."""

from dataclasses import dataclass
from typing import Any

from loopctl.domain import Decision, Task
from loopctl.report.account import check_line
from loopctl.report.blocks import (
    Block,
    Bullets,
    Heading,
    Item,
    Paragraph,
    Shell,
    Verbatim,
    plain,
    quiet,
    strong,
)
from loopctl.report.commands import Commands
from loopctl.report.summary import TaskSummary, task_document
from loopctl.report.wording import decision_document


@dataclass(frozen=True, slots=True)
class Chapter:
    """What one run did with the task.

    Attributes:
        lines: Its events, one line each, in order.
        summary: How the task stands in that run.
    """

    run_id: str
    lines: tuple[str, ...]
    summary: TaskSummary


@dataclass(frozen=True, slots=True)
class Story:
    """All that is known of a task.

    Attributes:
        entry: Of the manifest; ``None`` where the task is not in it any more.
        chapters: The oldest run first.
        refs: Under which trees of it are kept.
    """

    task: str
    title: str
    entry: Task | None
    chapters: tuple[Chapter, ...]
    decisions: tuple[Decision, ...]
    refs: tuple[str, ...]


def story_blocks(story: Story, commands: Commands) -> list[Block]:
    """Return the story for a reader."""
    blocks: list[Block] = [Heading(f"{story.task} {story.title}", level=1)]
    if story.entry:
        blocks.extend(_entry(story.entry))
    else:
        blocks.append(Paragraph((plain("Not in the manifest any more."),)))
    for chapter in story.chapters:
        blocks.append(Heading(f"Run {chapter.run_id}"))
        blocks.append(Bullets(tuple(Item((plain(line),)) for line in chapter.lines)))
        if chapter.summary.gate:
            checks = (Item(check_line(check), _tail(check.tail)) for check in chapter.summary.gate)
            blocks.append(Paragraph((quiet("The newest gate:"),)))
            blocks.append(Bullets(tuple(checks)))
    if story.decisions:
        blocks.append(Heading("Decisions"))
        blocks.append(Bullets(tuple(_decision(one, commands) for one in story.decisions)))
    if story.refs:
        blocks.append(Heading("Kept trees"))
        recover = ((commands.loop("recover", ref, "--branch", "NAME"), "") for ref in story.refs)
        blocks.append(Shell(tuple(recover)))
    return blocks


def _tail(text: str) -> tuple[Block, ...]:
    return (Verbatim(text),) if text.strip() else ()


def _entry(task: Task) -> list[Block]:
    facts = {
        "status": task.status.value,
        "kind": task.kind.value,
        "area": ", ".join(task.area),
        "deps": ", ".join(task.deps),
        "worker": task.worker or "",
        "command": task.command or "",
        "verify": task.verify_cmd or "",
        "options": ", ".join(option.name for option in task.options),
        "accept": "; ".join(task.accept),
    }
    items = (Item((quiet(f"{name}: "), plain(told))) for name, told in facts.items() if told)
    blocks: list[Block] = [Bullets(tuple(items))]
    return [*blocks, Verbatim(task.prompt)] if task.prompt.strip() else blocks


def _decision(decision: Decision, commands: Commands) -> Item:
    line = (strong(decision.id), plain(f" [{decision.kind.value}] {decision.question}"))
    if decision.answer is not None:
        return Item((*line, quiet(" — answered: "), plain(decision.answer)))
    return Item(line, (Shell(((commands.answer(decision), ""),)),))


def story_document(story: Story) -> dict[str, Any]:
    """Return the document of ``loop show --json``."""
    return {
        "schema": 1,
        "id": story.task,
        "title": story.title,
        "status": story.entry.status.value if story.entry else None,
        "runs": [
            {"run_id": chapter.run_id, **task_document(chapter.summary)}
            for chapter in story.chapters
        ],
        "decisions": [{**decision_document(one), "answer": one.answer} for one in story.decisions],
        "kept": list(story.refs),
    }
