"""Counts tokens before anything is sent; on the safe side, and without the network."""

import json
import math
from collections.abc import Mapping, Sequence
from typing import Any, Final

from loopctl.worker.model.lite import library

# Of text that is code, a token has three to four bytes; no tokenizer in use makes it less than two.
_BYTES_AT_LEAST: Final = 2
_BYTES_USUALLY: Final = 4


def count_prompt(
    model: str, messages: Sequence[Mapping[str, Any]], tools: Sequence[Mapping[str, Any]]
) -> int:
    """Return how many tokens a prompt has, its tools included.

    At least a quarter of its bytes, since providers put more around a message than a tokenizer
    knows of; half of them where there is no count.
    """
    size = len(json.dumps([*messages, *tools], ensure_ascii=False).encode("utf-8", "replace"))
    counted = _counted(model, messages=list(messages), tools=list(tools) or None)
    if counted is None:
        return math.ceil(size / _BYTES_AT_LEAST)
    return max(counted, math.ceil(size / _BYTES_USUALLY))


def count_text(model: str, text: str) -> int:
    """Return how many tokens a text has."""
    counted = _counted(model, text=text) if text else 0
    return (
        math.ceil(len(text.encode("utf-8", "replace")) / _BYTES_AT_LEAST)
        if counted is None
        else counted
    )


def _counted(model: str, **what: Any) -> int | None:
    try:
        return int(library().token_counter(model=model, **what))
    except Exception:  # noqa: BLE001  # whatever it stumbles over, the request itself may be sound
        return None
