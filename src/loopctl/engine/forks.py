"""Competing candidates of one task: how they share the budget, and which one wins. Pure."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Final

from loopctl.domain import Decision, Option
from loopctl.engine.terminator import is_of_run
from loopctl.engine.work import Ended
from loopctl.plan import Budget
from loopctl.steps import ForkRaised
from loopctl.verdict import Blame, Check, GateResult, Verdict

LEAST: Final = 2
"""Options of a fork that are tried, where the beam is narrower: fewer are no comparison."""


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


def left(budget: Budget) -> Budget:
    """Return what is left of a budget, as one of which nothing is spent."""
    caps = (
        None if cap is None else max(cap - used, 0)
        for cap, used in (
            (budget.loops_max, budget.loops_used),
            (budget.tokens_max, budget.tokens_used),
            (budget.wall_max_ms, budget.wall_ms),
            (budget.usd_max, budget.usd_used),
        )
    )
    loops, tokens, wall_ms, usd = caps
    return Budget(
        loops_max=None if loops is None else int(loops),
        tokens_max=None if tokens is None else int(tokens),
        wall_max_ms=None if wall_ms is None else int(wall_ms),
        usd_max=usd,
    )


def together(budget: Budget, spent: Sequence[Budget]) -> Budget:
    """Return a budget with what candidates have spent that ran side by side."""
    return replace(
        budget,
        loops_used=budget.loops_used + sum(one.loops_used for one in spent),
        tokens_used=budget.tokens_used + sum(one.tokens_used for one in spent),
        usd_used=budget.usd_used + sum(one.usd_used for one in spent),
        wall_ms=budget.wall_ms + max((one.wall_ms for one in spent), default=0),
    )


def entrants(raised: ForkRaised, width: int) -> tuple[Option, ...]:
    """Return the options of a fork that are tried: as many as the beam is wide, the guess first."""
    guess = raised.best_guess.strip().casefold()
    options = sorted(raised.options, key=lambda option: option.name.casefold() != guess)
    return tuple(options[: max(LEAST, width)])


def holds(gate: GateResult) -> bool:
    """Say whether a candidate may go on whose plan has todos after the fork.

    Its result is not whole yet, so it is enough that nothing is red but what was red without it:
    every check before ``verify`` has passed, and ``verify`` has failed at the base as well.
    """
    last = gate.checks[-1]
    is_red_before = last.verdict is Verdict.FAIL and last.blame is Blame.PRE_EXISTING
    return gate.is_passed or (last.check is Check.VERIFY and is_red_before)


def pick(candidates: Sequence[Scored]) -> Scored | None:
    """Return the candidate that wins among those that passed.

    One that the gate has passed comes before one that merely holds, of those the one with fewer
    red tests; then the smallest diff; then the first.
    """
    passing = [scored for scored in candidates if scored.ended.is_passed]
    return min(passing, key=lambda one: (*_redness(one.ended), one.changed_lines), default=None)


def _redness(ended: Ended) -> tuple[bool, int]:
    gate = ended.gate
    if gate is None or gate.is_passed:
        return False, 0
    return True, len(gate.checks[-1].findings)


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


def is_asked_by_some(decision: Decision) -> bool:
    """Say whether a decision is the question of one of several candidates."""
    return decision.question.startswith(_MARK)


_MARK: Final = "(option "


def _mark(candidate: str) -> str:
    return f"{_MARK}{candidate}) "
