"""The past of a candidate, one turn for each of its steps: pure.

It only grows at its end: what a request has shown stays as it was in all later ones.
"""

from dataclasses import replace
from typing import Final

from loopctl.past import TURN_BYTES, Past, Turn

_GAP: Final = "\n[…]\n"


def remembered(past: Past, iteration: int, text: str) -> Past:
    """Return the past with what a step came to, in words; with none of them it stays as it is.

    A planning step and the step after it are one iteration: their turns have the same number.
    """
    if not text:
        return past
    return replace(past, turns=(*past.turns, Turn(iteration, cut(text))))


def has_begun(past: Past, iteration: int) -> bool:
    """Say whether a step of the iteration, its planning, has its turn already."""
    return bool(past.turns) and past.turns[-1].number == iteration


def cut(text: str) -> str:
    """Return at most ``TURN_BYTES`` of a text, its middle left out: checkpoints must not grow.

    What is no UTF-8 counts as its escapes do; no character is cut in two.
    """
    data = text.encode("utf-8", "surrogatepass")
    if len(data) <= TURN_BYTES:
        return text
    half = (TURN_BYTES - len(_GAP.encode())) // 2
    return f"{_readable(data[:half])}{_GAP}{_readable(data[-half:])}"


def _readable(data: bytes) -> str:
    """Return the whole characters of a piece; at its ends there may be parts of some."""
    return data.decode("utf-8", "ignore")
