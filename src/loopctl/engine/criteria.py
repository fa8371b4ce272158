"""The goal's done-criteria, looked at on the integration head."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Final

from loopctl.domain import REJECTED, Criterion, DecisionDraft, Goal, Sha
from loopctl.engine import questions
from loopctl.events import GoalJudged
from loopctl.ports import Emit, Gate
from loopctl.verdict import Verdict

_YES: Final = frozenset({"yes", "y"})
_NO: Final = frozenset({"no", "n", REJECTED})


@dataclass(frozen=True, slots=True)
class Judged:
    """What is known of the goal.

    Attributes:
        is_unmet: A criterion is known not to be met, and nobody needs to be asked about it.
        drafts: What a human is asked; empty where every criterion is decided.
    """

    is_unmet: bool = False
    drafts: tuple[DecisionDraft, ...] = field(default=())


def judge_goal(
    goal: Goal, head: Sha, gate: Gate, emit: Emit, answers: Mapping[tuple[str, str], str]
) -> Judged:
    """Return what is known of the goal on ``head``, and put it into the events.

    A command decides for itself. A sentence is ``unknown`` where nothing here can judge it; a
    human's answer to the question it becomes decides it for as long as ``head`` stays.

    Args:
        goal: With its done-criteria.
        head: The commit to look at.
        gate: Runs the commands.
        emit: Takes the event.
        answers: The goal's earlier decisions: answers by question and reason.
    """
    if not goal.done_when:
        return Judged()
    seen: list[tuple[str, Verdict, str]] = []
    drafts: list[DecisionDraft] = []
    for criterion in goal.done_when:
        text, verdict, why, draft = _judge(criterion, head, gate, answers)
        seen.append((text, verdict, why))
        drafts += [draft] if draft is not None else []
    verdicts = [verdict for _, verdict, _ in seen]
    emit(GoalJudged(met=_all_met(verdicts), criteria=tuple(seen)))
    return Judged(is_unmet=Verdict.FAIL in verdicts, drafts=tuple(drafts))


def _judge(
    criterion: Criterion, head: Sha, gate: Gate, answers: Mapping[tuple[str, str], str]
) -> tuple[str, Verdict, str, DecisionDraft | None]:
    if criterion.check is not None:
        result = gate.run_check(criterion.check, head)
        if result.verdict is Verdict.PASS:
            return criterion.check, Verdict.PASS, "", None
        draft = questions.unmet_check(criterion.check, result)
        return criterion.check, result.verdict, result.reason, draft
    text = criterion.criterion or ""
    draft = questions.criterion(text, head)
    answer = answers.get((draft.question, draft.reason))
    is_met = None if answer is None else said_yes(answer)
    if is_met is None:
        return text, Verdict.UNKNOWN, draft.reason, draft
    return text, Verdict.PASS if is_met else Verdict.FAIL, f"answered: {answer}", None


def said_yes(answer: str) -> bool | None:
    """Return what an answer says whose first word is a plain yes or no; ``None`` for others."""
    first = answer.split(maxsplit=1)[0].strip(".,;:!").lower() if answer.strip() else ""
    if first in _YES:
        return True
    return False if first in _NO else None


def _all_met(verdicts: Sequence[Verdict]) -> bool | None:
    if Verdict.FAIL in verdicts:
        return False
    return None if Verdict.UNKNOWN in verdicts else True
