"""Competing candidates of one task: how they share the budget, and which one wins. Pure."""

from collections.abc import Sequence
from dataclasses import dataclass, replace

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


def best_loser(candidates: Sequence[Scored]) -> Ended:
    """Return the candidate to go by where none passed: one that asks a human before others."""
    asking = [scored.ended for scored in candidates if scored.ended.drafts]
    return asking[0] if asking else candidates[0].ended
