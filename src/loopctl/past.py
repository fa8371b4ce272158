"""What a candidate has been through, as its worker is shown it: turns, and summaries of older ones.

It is what a checkpoint carries of the context: never a transcript. :func:`encode_past` gives the
form in which it is carried.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final

TURN_BYTES: Final = 4096
"""Of a turn's text in UTF-8: what is longer is cut in its middle by who makes the turn."""

SUMMARY_BYTES: Final = 4096
"""Of a summary's text in UTF-8, however many turns it stands for."""


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

    @property
    def size_bytes(self) -> int:
        """The length of all texts in UTF-8."""
        texts = [*(one.text for one in self.summaries), *(one.text for one in self.turns)]
        return sum(map(text_bytes, texts))


def text_bytes(text: str) -> int:
    """Return the length of a text in UTF-8; a lone surrogate, which has none, counts as 3."""
    return len(text.encode("utf-8", "surrogatepass"))


def encode_past(past: Past) -> dict[str, Any]:
    """Return the past as JSON values, equal ones for equal pasts.

    The shape is ``{"summaries": [[first, last, text], ...], "turns": [[number, text], ...]}``.
    As JSON without spaces and with characters beyond ASCII as they are it has at most
    ``6 * past.size_bytes + 64 * entries + 64`` bytes, numbers being below 2**63: six where a
    text is all control characters, hardly more than one where it is prose. A past that was
    tended holds no more text than its window, so that a checkpoint is bounded too.
    """
    return {
        "summaries": [[one.first, one.last, one.text] for one in past.summaries],
        "turns": [[one.number, one.text] for one in past.turns],
    }


def decode_past(body: Mapping[str, Any]) -> Past:
    """Return the past that :func:`encode_past` gave.

    Raises:
        ValueError: It is something else.
    """
    try:
        return Past(
            summaries=tuple(
                Summary(_number(first), _number(last), _text(text))
                for first, last, text in body["summaries"]
            ),
            turns=tuple(Turn(_number(number), _text(text)) for number, text in body["turns"]),
        )
    except (KeyError, TypeError, ValueError) as exc:
        raise ValueError(f"a past has another shape: {exc}") from exc


def _number(value: object) -> int:
    if type(value) is not int:
        raise TypeError(f"{value!r} is no number of a step")
    return value


def _text(value: object) -> str:
    if not isinstance(value, str):
        raise TypeError(f"{value!r} is no text")
    return value
