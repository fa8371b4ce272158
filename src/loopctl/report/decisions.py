"""The decisions report: everything that a human must decide, with the command that answers it.

A premise that turned out false stands at the top, since it may make other work worthless; then
the questions of the kickoff; then the rest in the order in which they were raised.
"""

from collections.abc import Iterable

from loopctl.domain import Decision, DecisionKind
from loopctl.report.blocks import (
    Block,
    Bullets,
    Heading,
    Item,
    Paragraph,
    Shell,
    Span,
    Tone,
    code,
    plain,
    quiet,
    strong,
)
from loopctl.report.commands import Commands
from loopctl.report.summary import RunSummary
from loopctl.report.wording import rank


def ordered(decisions: Iterable[Decision]) -> tuple[Decision, ...]:
    """Return the decisions in the order in which a reader should meet them."""
    return tuple(sorted(decisions, key=rank))


def decision_blocks(summary: RunSummary, commands: Commands) -> list[Block]:
    """Return the section of open decisions and, where there are some, of answered ones."""
    blocks: list[Block] = []
    if summary.decisions:
        blocks.append(Heading(f"Decisions needed ({len(summary.decisions)})"))
        items = (_open(decision, summary, commands) for decision in ordered(summary.decisions))
        blocks.append(Bullets(tuple(items)))
    if summary.answered:
        blocks.append(Heading("Decisions answered"))
        blocks.append(Bullets(tuple(_answered(decision) for decision in summary.answered)))
    return blocks


def _open(decision: Decision, summary: RunSummary, commands: Commands) -> Item:
    below: list[Block] = []
    if decision.reason and decision.reason != decision.question:
        below.append(Paragraph((quiet("Why: "), plain(decision.reason))))
    if decision.best_guess:
        below.append(Paragraph((quiet("Best guess: "), plain(decision.best_guess))))
    if decision.options:
        below.append(Paragraph((quiet("Options: "), plain(" · ".join(decision.options)))))
    held = [wait.task for wait in summary.waits if wait.task != decision.task]
    held = [task for task in held if _waits_for(summary, task, decision)]
    if held:
        below.append(Paragraph((quiet("Holds up: "), plain(", ".join(held)))))
    below.append(Shell(((commands.answer(decision), ""),)))
    return Item(_headline(decision, summary), tuple(below))


def _headline(decision: Decision, summary: RunSummary) -> tuple[Span, ...]:
    task = summary.task(decision.task)
    tone = Tone.BAD if decision.kind is DecisionKind.PREMISE else Tone.WARN
    title = f" {task.title}" if task and task.title else ""
    return (
        strong(decision.id),
        Span(f" [{decision.kind.value}]", tone),
        quiet(f"{title}: "),
        plain(decision.question),
    )


def _waits_for(summary: RunSummary, task: str, decision: Decision) -> bool:
    words = next((wait.reason for wait in summary.waits if wait.task == task), "").split()
    named = {word.strip("()[]`'\",;:") for word in words}
    return bool({decision.task, decision.id} & named)


def _answered(decision: Decision) -> Item:
    return Item(
        (
            strong(decision.id),
            plain(f" {decision.question} "),
            quiet("— answered: "),
            code(decision.answer or ""),
        )
    )
