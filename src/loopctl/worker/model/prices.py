"""What a call costs: the settings' price, else LiteLLM's own table, else nobody knows."""

import math
from typing import Any, Final

from loopctl.worker.model.lite import library
from loopctl.worker.model.routes import Attempt

_MTOK: Final = 1_000_000
_FIELDS: Final = ("input_cost_per_token", "output_cost_per_token")


def usd_of(attempt: Attempt, prompt_tokens: int, completion_tokens: int) -> float | None:
    """Return the dollars for a call of this size; ``None`` where the price is not known."""
    price = attempt.price
    if price is not None:
        return (
            prompt_tokens * price.input_usd_per_mtok + completion_tokens * price.output_usd_per_mtok
        ) / _MTOK
    if not _is_listed(attempt.model):
        return None
    return _by_table(attempt, prompt_tokens=prompt_tokens, completion_tokens=completion_tokens)


def usd_of_usage(attempt: Attempt, usage: Any, prompt_tokens: int, completion_tokens: int) -> float:
    """Return what a call has cost.

    Args:
        attempt: The model.
        usage: LiteLLM's, as the provider reported it: it may tell of cached tokens, which cost
            less, or of a price; ``None`` where there was none.
        prompt_tokens: Reported or counted.
        completion_tokens: Likewise.
    """
    if attempt.price is None and usage is not None:
        known = _by_table(attempt, usage_object=usage) if _is_listed(attempt.model) else None
        reported = getattr(usage, "cost", None)
        for usd in (known, reported):
            if isinstance(usd, int | float) and math.isfinite(usd) and usd >= 0:
                return float(usd)
    return usd_of(attempt, prompt_tokens, completion_tokens) or 0.0


def _is_listed(model: str) -> bool:
    """The table has the prices; LiteLLM takes one that is missing for zero."""
    prefix, _, name = model.partition("/")
    table = library().model_cost
    entry = table.get(model)
    if entry is None:
        entry = table.get(name, {})
        if not str(entry.get("litellm_provider", "")).startswith(prefix):
            return False
    fields = _FIELDS[:1] if entry.get("mode") == "embedding" else _FIELDS
    return all(isinstance(entry.get(field), int | float) for field in fields)


def _by_table(attempt: Attempt, **size: Any) -> float | None:
    try:
        prompt, completion = library().cost_per_token(model=attempt.model, **size)
    except Exception:  # noqa: BLE001  # a price that cannot be had is one that is not known
        return None
    usd = float(prompt) + float(completion)
    return usd if math.isfinite(usd) and usd >= 0 else None
