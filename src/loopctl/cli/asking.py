"""Asks every open decision in one round at the terminal."""

from collections.abc import Iterable, Sequence
from typing import TextIO

from loopctl.cli.answers import Given, caps_in
from loopctl.cli.output import write
from loopctl.domain import Decision, DecisionDraft, DecisionKind, asks_consent
from loopctl.report.escape import one_line
from loopctl.report.wording import colon_word, counted

GUESS = "="
"""What is typed to take the best guess."""


def ask_all(decisions: Sequence[Decision], stdin: Iterable[str], stream: TextIO) -> list[Given]:
    """Return what was answered; an empty line skips one, the end of input skips the rest.

    Ctrl-C ends the round without an answer: it says so, and nothing is recorded.

    Args:
        decisions: In the order in which they are asked.
        stdin: Lines as they are typed.
        stream: Where the questions go; stdout is kept for the result.
    """
    given: list[Given] = []
    try:
        _ask(decisions, stdin, stream, given)
    except KeyboardInterrupt:
        were = "was" if len(given) == 1 else "were"
        write(stream, f"\n{counted(len(given), 'answer')} {were} not recorded.\n")
        raise
    return given


def _ask(
    decisions: Sequence[Decision], stdin: Iterable[str], stream: TextIO, given: list[Given]
) -> None:
    write(stream, f"{len(decisions)} open. An empty line skips, {GUESS} takes the best guess.\n")
    lines = iter(stdin)
    for number, decision in enumerate(decisions, 1):
        lead = f"{decision.id} [{decision.kind.value}]"
        write(stream, f"\n({number}/{len(decisions)}) {described(lead, decision)}\n> ")
        line = next(lines, None)
        if line is None:
            write(stream, "\n")
            break
        text = meant(line.strip(), decision)
        if text:
            given.append(Given(colon_word(decision), text, _caps(decision, text)))


def described(lead: str, decision: Decision | DecisionDraft) -> str:
    """Return what is asked, after ``lead``, and how it can be answered: lines made harmless."""
    lines = [f"{lead} {decision.question}"]
    if decision.reason:
        lines.append(f"    why: {decision.reason}")
    if asks_consent(decision):
        lines.append("    answer with: approve or reject")
    if decision.kind is DecisionKind.BUDGET:
        lines.append("    answer with a new cap (usd, tokens, loops or wall_s) or reject")
    if decision.best_guess:
        lines.append(f"    best guess: {decision.best_guess}")
    lines += [f"    {number}. {option}" for number, option in enumerate(decision.options, 1)]
    return "\n".join(
        lead + one_line(line) for line in lines for lead in [line[: len(line) - len(line.lstrip())]]
    )


def meant(text: str, decision: Decision | DecisionDraft) -> str:
    """Return the answer that was typed: the best guess, an option by its number, or itself."""
    if text == GUESS:
        return decision.best_guess
    if text.isascii() and text.isdigit() and 1 <= int(text) <= len(decision.options):
        return decision.options[int(text) - 1]
    return text


def _caps(decision: Decision, text: str) -> dict[str, float] | None:
    return caps_in(text) if decision.kind is DecisionKind.BUDGET else None
