"""Says which cap a claim would pass: pure, in tokens and whole micro-dollars.

A price is rounded up and a cap down, so that no sum of parts of a micro-dollar passes a cap.
"""

from dataclasses import dataclass
from decimal import ROUND_CEILING, ROUND_FLOOR, Decimal
from typing import Final

from loopctl.moneyports import Cap, Claim, Refused
from loopctl.settings import BudgetSettings

MICRO: Final = 1_000_000
"""Micro-dollars in a dollar."""


@dataclass(frozen=True, slots=True)
class Spent:
    """What was spent and put aside, of a task or a run."""

    tokens: int = 0
    micro_usd: int = 0


@dataclass(frozen=True, slots=True)
class RunCaps:
    """What a run may spend. ``None`` means no cap, 0 that nothing may be spent.

    Attributes:
        has_user_usd_cap: The user himself has set a cap in dollars in the settings or on the
            command line; then a call whose price nobody knows is refused.
    """

    usd: float | None = None
    tokens: int | None = None
    has_user_usd_cap: bool = False


def run_caps(budget: BudgetSettings) -> RunCaps:
    """Return the caps of a run with these settings.

    A cap in dollars is the user's own where it was set, to the default's amount too.
    """
    is_own = budget.task_usd is not None or "run_usd" in budget.model_fields_set
    return RunCaps(budget.run_usd, budget.run_tokens, has_user_usd_cap=is_own)


def micro_usd(usd: float) -> int:
    """Return dollars as whole micro-dollars, rounded up.

    Raises:
        ValueError: It is negative or not finite.
    """
    return _micro(usd, ROUND_CEILING)


def refusal(claim: Claim, caps: RunCaps, task: Spent, run: Spent) -> Refused | None:
    """Return why a claim may not be granted; ``None`` where it fits under every cap.

    The caps of the task come first: a task whose own budget is too small stops no other.

    Args:
        claim: What a call can cost at worst; its caps are the task's.
        caps: Of the run.
        task: What the task has spent before, and put aside.
        run: The same of the whole run, that task included.

    Raises:
        ValueError: The claim's tokens or dollars are negative, or the dollars not finite.
    """
    if claim.tokens < 0:
        raise ValueError(f"a claim of {claim.tokens} tokens")
    if claim.usd is None and (caps.has_user_usd_cap or claim.caps.usd is not None):
        return Refused(None, _unpriced(claim))
    more = Spent(claim.tokens, micro_usd(claim.usd or 0.0))
    for cap, limit, used, added in (
        (Cap.TASK_TOKENS, claim.caps.tokens, task.tokens, more.tokens),
        (Cap.TASK_USD, claim.caps.usd, task.micro_usd, more.micro_usd),
        (Cap.RUN_TOKENS, caps.tokens, run.tokens, more.tokens),
        (Cap.RUN_USD, caps.usd, run.micro_usd, more.micro_usd),
    ):
        if limit is None:
            continue
        is_usd = cap in {Cap.TASK_USD, Cap.RUN_USD}
        whole = _micro(limit, ROUND_FLOOR) if is_usd else int(limit)
        if used + added > whole:
            return _refused(cap, claim, (limit, used, added))
    return None


def _refused(cap: Cap, claim: Claim, sums: tuple[float, int, int]) -> Refused:
    limit, used, added = sums
    of_task = "" if cap.is_of_run else f" of {claim.task}"
    if cap in {Cap.TASK_TOKENS, Cap.RUN_TOKENS}:
        sizes = f"{added} tokens at worst, and {used} of {limit:.15g} are spent or put aside"
        needed: float = used + added
    else:
        sizes = (
            f"${added / MICRO:.15g} at worst, and ${used / MICRO:.15g} of ${limit:.15g} are spent "
            "or put aside"
        )
        needed = (used + added) / MICRO
    name = f"budget.{cap}" if cap.is_of_run else str(cap)
    what = f"a call of {claim.model} ({claim.purpose}) would pass {name}{of_task}: it can cost"
    return Refused(cap, f"{what} {sizes}; raise the cap", needed)


def _unpriced(claim: Claim) -> str:
    return (
        f"nobody knows what {claim.model} costs, and a cap in US dollars is set: give that model "
        "input_usd_per_mtok and output_usd_per_mtok under [models], or set no cap in US dollars"
    )


def _micro(usd: float, rounding: str) -> int:
    amount = Decimal(repr(float(usd)))
    if not amount.is_finite() or amount < 0:
        raise ValueError(f"{usd} US dollars are no amount that could be spent")
    return int((amount * MICRO).to_integral_value(rounding))
