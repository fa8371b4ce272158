"""Turns what the user gave into answers: pure; every answer is checked before one is recorded."""

import math
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Final

from loopctl.cli.words import shown, suggestion
from loopctl.domain import APPROVED, REJECTED, Decision, DecisionKind, asks_consent
from loopctl.errors import AnswerError, UsageError
from loopctl.given import Answer
from loopctl.report.wording import colon_word, takeable_guess

CAPS: Final = ("usd", "tokens", "loops", "wall_s")
_YES: Final = frozenset({"approve", "approved", "yes", "y"})
_NO: Final = frozenset({"reject", "rejected", "no", "n"})


@dataclass(frozen=True, slots=True)
class Given:
    """What was said to one decision, not yet checked.

    Attributes:
        target: A decision's id, or ``TASK:N`` for it, or a task's id.
        budget: Caps that are raised; empty where none are.
    """

    target: str
    text: str = ""
    budget: Mapping[str, float] | None = None


def checked(
    given: Iterable[Given], decisions: Sequence[Decision], standing: Collection[str]
) -> tuple[Answer, ...]:
    """Return the answers, when all of them fit.

    Args:
        given: In any order.
        decisions: All decisions, open and answered.
        standing: The ids of those that still wait for an answer.

    Raises:
        AnswerError: Some do not fit; the message holds a line for each.
    """
    answers: dict[str, Answer] = {}
    faults: list[str] = []
    for one in given:
        try:
            answer = _fitted(one, find(one.target, decisions, standing))
        except AnswerError as error:
            faults.append(str(error))
            continue
        if answer.decision_id in answers:
            faults.append(f"{answer.decision_id} is answered twice here")
        answers[answer.decision_id] = answer
    if faults:
        raise AnswerError("\n".join(faults))
    return tuple(answers.values())


def find(target: str, decisions: Sequence[Decision], standing: Collection[str]) -> Decision:
    """Return the open decision of that id, or the one open decision of that task.

    Where a word is the id of a decision and of a task, what is open decides.

    Raises:
        AnswerError: There is none, there are several, or it was answered before.
    """
    named = [one for one in decisions if target in {one.id, colon_word(one)}]
    of_task = [one for one in decisions if one.task == target]
    open_named = [one for one in named if one.id in standing]
    still_open = [*open_named, *(one for one in of_task if one.id in standing)]
    if len(still_open) == 1:
        return still_open[0]
    if open_named:
        raise AnswerError(_two_readings(target, still_open))
    if still_open:
        ids = ", ".join(f"{one.id} ({one.question})" for one in still_open)
        raise AnswerError(f"{target} has several open decisions, name one of them: {ids}")
    same = named or of_task
    if same and same[-1].answer is None:
        raise AnswerError(f"{same[-1].id} is asked no more: {same[-1].task} has gone on without it")
    if same:
        last = same[-1]
        when = f" at {last.answered_at}" if last.answered_at else ""
        raise AnswerError(
            f"{last.id} was answered already{when}: {shown(last.answer or '')}; nothing was changed"
        )
    known = [name for one in decisions if one.id in standing for name in (one.id, one.task)]
    raise AnswerError(f"{shown(target)} names no decision{suggestion(target, known)}")


def _two_readings(target: str, still_open: Sequence[Decision]) -> str:
    first, *others = still_open
    ids = " or ".join(f"{one.id} ({one.question})" for one in others)
    return (
        f"{target} is the decision of {first.task} ({first.question}) and a task with decisions of "
        f"its own; write {colon_word(first)} for the decision, or for the task {ids}"
    )


def _fitted(given: Given, decision: Decision) -> Answer:
    text = given.text.strip()
    budget = dict(given.budget) if given.budget else None
    if budget and not text:
        text = " ".join(f"{name}={value:g}" for name, value in budget.items())
    if not text:
        raise AnswerError(f"the answer to {decision.id} is empty")
    if text == "…":
        raise AnswerError(f"write your answer to {decision.id} in place of the three dots")
    if asks_consent(decision):
        return Answer(decision.id, _consent(decision.id, text), budget)
    if text == APPROVED:
        raise AnswerError(f"{decision.id} is no approval; answer it in words: {decision.question}")
    if decision.kind is DecisionKind.BUDGET and text != REJECTED:
        budget = _enough(decision, budget or caps_in(text))
    return Answer(decision.id, text, budget)


def consent_word(text: str) -> str:
    """Return ``approve`` or ``reject`` for a word that means it; empty for any other."""
    word = text.casefold()
    if word in _YES:
        return APPROVED
    return REJECTED if word in _NO else ""


def _consent(decision_id: str, text: str) -> str:
    if word := consent_word(text):
        return word
    raise AnswerError(
        f"{decision_id} asks for an approval: --approve or --reject, not {shown(text)}"
    )


def _enough(decision: Decision, budget: dict[str, float] | None) -> dict[str, float]:
    """Return the caps where they let the task go on: the one that is spent, raised above it."""
    name, used = spent(decision)
    proposal = next(iter(decision.options), f"{name or 'usd'}=2")
    if budget is None:
        raise AnswerError(f"{decision.id} asks for a budget: --budget {proposal}, or --reject")
    if name and name not in budget:
        raise AnswerError(
            f"{decision.id} asks for {name}, and {', '.join(budget)} does not help it: "
            f"--budget {proposal}, or --reject"
        )
    if name and budget[name] <= used:
        raise AnswerError(
            f"{decision.id}: {name}={budget[name]:g} is no more than what was used "
            f"({used:g}): --budget {proposal}, or --reject"
        )
    return budget


def spent(decision: Decision) -> tuple[str, float]:
    """Return the cap that a budget decision is about and what was used of it.

    Decisions of older versions name the cap alone; then the name may be empty and nothing used.
    """
    word = next(iter(decision.reason.split()), "")
    name, _, used = word.partition("=")
    name = "wall_s" if name == "wall" else name
    try:
        return (name, float(used)) if name in CAPS else ("", 0.0)
    except ValueError:
        return name, -1.0


def caps_in(text: str) -> dict[str, float] | None:
    """Return the caps when ``text`` is nothing but caps (``usd=2 loops=50``), else ``None``."""
    try:
        return read_caps(text.split()) or None
    except UsageError:
        return None


def read_caps(words: Iterable[str]) -> dict[str, float]:
    """Return the caps that ``--budget`` gives.

    Raises:
        UsageError: A word is not ``NAME=NUMBER``, the name is unknown, the number no cap.
    """
    caps: dict[str, float] = {}
    for word in words:
        name, _, amount = word.partition("=")
        if name not in CAPS:
            raise UsageError(
                f"--budget {shown(word)}: one of {', '.join(CAPS)} and a number are needed, "
                f"as in usd=2{suggestion(name, CAPS)}"
            )
        caps[name] = _number(word, amount)
    return caps


def _number(word: str, amount: str) -> float:
    try:
        value = float(amount)
    except ValueError:
        value = math.nan
    if not math.isfinite(value) or value < 0:
        raise UsageError(f"--budget {shown(word)}: a number is needed, 0 or more")
    return value


def guesses(decisions: Iterable[Decision]) -> list[Given]:
    """Return the best guess of every open decision that has one; approvals are never guessed."""
    return [
        Given(colon_word(one), takeable_guess(one))
        for one in decisions
        if one.answer is None and takeable_guess(one) and not asks_consent(one)
    ]
