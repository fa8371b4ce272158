"""The goal's done-criteria, looked at on the integration head."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Final

from loopctl.domain import REJECTED, Criterion, DecisionDraft, Sha
from loopctl.engine import questions
from loopctl.engine.anchor import Anchor
from loopctl.events import GoalJudged
from loopctl.ports import Emit
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
    anchor: Anchor, head: Sha, emit: Emit, answers: Mapping[tuple[str, str], str]
) -> Judged:
    """Return what is known of the goal on ``head``, and put it into the events.

    A command decides for itself. A sentence is ``unknown`` where nothing here can judge it; a
    human's answer to the question it becomes decides it for as long as ``head`` stays.

    Args:
        anchor: Looks at the goal's criteria.
        head: The commit to look at.
        emit: Takes the event.
        answers: The goal's earlier decisions: answers by question and reason.
    """
    done_when = anchor.goal.done_when
    if not done_when:
        return Judged()
    seen: list[tuple[str, Verdict, str]] = []
    drafts: list[DecisionDraft] = []
    for criterion in done_when:
        text, verdict, why, draft = _judge(criterion, head, anchor, answers)
        seen.append((text, verdict, why))
        drafts += [draft] if draft is not None else []
    verdicts = [verdict for _, verdict, _ in seen]
    emit(GoalJudged(met=_all_met(verdicts), criteria=tuple(seen)))
    return Judged(is_unmet=Verdict.FAIL in verdicts, drafts=tuple(drafts))


def _judge(
    criterion: Criterion, head: Sha, anchor: Anchor, answers: Mapping[tuple[str, str], str]
) -> tuple[str, Verdict, str, DecisionDraft | None]:
    if criterion.check is not None:
        result = anchor.run_check(criterion.check, head)
        if result.verdict is Verdict.PASS:
            return criterion.check, Verdict.PASS, "", None
        draft = questions.unmet_check(criterion.check, result)
        return criterion.check, result.verdict, result.reason, draft
    text = criterion.criterion or ""
    draft = questions.criterion(text, head)
    answer = answers.get((draft.question, draft.reason))
    is_met = None if answer is None else said_yes(answer)
    if is_met is None:
        verdict, why = anchor.judge_text(text, head)
        if verdict is not Verdict.UNKNOWN:
            return text, verdict, why, None
        return text, Verdict.UNKNOWN, why or draft.reason, draft
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
