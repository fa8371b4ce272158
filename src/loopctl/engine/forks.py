"""Competing candidates of one task: how they share the budget, and which one wins. Pure."""

from collections.abc import Sequence
from dataclasses import dataclass, replace

from loopctl.domain import Decision
from loopctl.engine.terminator import is_of_run
from loopctl.engine.work import Ended
from loopctl.plan import Budget


@dataclass(frozen=True, slots=True)
class Scored:
    """A candidate at its end, and the size of its diff in changed lines."""

    ended: Ended
    changed_lines: int


def share(budget: Budget, candidates: int) -> Budget:
    """Return what each of ``candidates`` may spend: an equal part, at least one step.

    The wall limit is not divided: candidates run side by side.
    """
    loops, tokens, usd = budget.loops_max, budget.tokens_max, budget.usd_max
    return replace(
        budget,
        loops_max=loops if not loops else max(1, loops // candidates),
        tokens_max=tokens if tokens is None else tokens // candidates,
        usd_max=usd if usd is None else usd / candidates,
    )


def pick(candidates: Sequence[Scored]) -> Scored | None:
    """Return the passing candidate with the smallest diff, the first of equals."""
    passing = [scored for scored in candidates if scored.ended.is_passed]
    return min(passing, key=lambda scored: scored.changed_lines, default=None)


def without_winner(candidates: Sequence[Scored]) -> Ended:
    """Return what the task comes to where no candidate passed: the questions of all that ask.

    Each question names its candidate, to which alone the answer goes. Where nobody asks, and one
    was cut short by the run's budget, the task is still to be done.
    """
    asking = [scored.ended for scored in candidates if scored.ended.drafts]
    if not asking:
        ended = [scored.ended for scored in candidates]
        return next((one for one in ended if is_of_run(one.stop)), ended[0])
    drafts = tuple(
        replace(draft, question=f"{_mark(ended.candidate)}{draft.question}")
        for ended in asking
        for draft in ended.drafts
    )
    return replace(asking[0], drafts=drafts)


def is_asked_by(decision: Decision, candidate: str) -> bool:
    """Say whether a decision of a task with options is the question of that candidate."""
    return decision.question.startswith(_mark(candidate))


def _mark(candidate: str) -> str:
    return f"(option {candidate}) "
