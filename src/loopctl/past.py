"""What a candidate has been through, as its worker is shown it: turns, and summaries of older ones.

It is what a checkpoint carries of the context: never a transcript.
"""

from dataclasses import dataclass
from typing import Final

TURN_BYTES: Final = 4096
"""Of a turn's text in UTF-8: what is longer is cut in its middle by who makes the turn."""


@dataclass(frozen=True, slots=True)
class Turn:
    """One step, in words: what the worker said, called, and saw.

    Attributes:
        number: The iteration of the step.
    """

    number: int
    text: str


@dataclass(frozen=True, slots=True)
class Summary:
    """The turns ``first`` to ``last``, both included, in a few words."""

    first: int
    last: int
    text: str


@dataclass(frozen=True, slots=True)
class Past:
    """Oldest first; every turn is in exactly one of the two, and is summarised once."""

    summaries: tuple[Summary, ...] = ()
    turns: tuple[Turn, ...] = ()
