"""How a message shows a value of the user's, and which known name was probably meant."""

import difflib
import re
from collections.abc import Collection, Iterable, Mapping
from typing import Final

SHOWN_CHARS: Final = 60
"""A longer text is cut where a message shows it."""

UNPRINTABLE: Final = re.compile(
    "[\x00-\x1f\x7f-\x9f\u061c\u200e\u200f\u2028\u2029\u202a-\u202e\u2066-\u2069]"
)
"""Control characters, line separators, and marks that turn the direction of what follows."""


def show(value: object) -> str:
    """Return one short printable line for a value that came out of TOML.

    Tables and lists are named, not shown: they may be large, and nested beyond any depth.
    """
    if isinstance(value, str):
        cut = value if len(value) <= SHOWN_CHARS else value[:SHOWN_CHARS] + "…"
        return '"' + "".join(_escape(char) for char in cut) + '"'
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, Mapping):
        return "a table"
    if isinstance(value, list | tuple):
        return "a list" if value else "[]"
    if isinstance(value, int) and abs(value) >= 1 << 64:
        return "a number beyond 64 bits"
    return str(value)[:SHOWN_CHARS]


def _escape(char: str) -> str:
    if char in '"\\':
        return "\\" + char
    if char.isprintable():
        return char
    return {"\n": "\\n", "\t": "\\t", "\r": "\\r"}.get(char, f"\\u{ord(char):04X}")


class Guesses:
    """Suggestions, as long as they have looked at no more than ``looks`` names in all.

    A file with thousands of faults, each against thousands of names, is answered in good time;
    its later faults come without a suggestion.
    """

    def __init__(self, looks: int = 200_000) -> None:
        self._left = looks

    def hint(self, word: str, known: Collection[str]) -> str:
        """Return ``' (did you mean "…"?)'``, or nothing when no known name is near."""
        if self._left <= 0:
            return ""
        self._left -= len(known)
        close = near(word, known, limit=1)
        return f" (did you mean {show(close[0])}?)" if close else ""


def near(word: str, known: Iterable[str], limit: int = 3) -> tuple[str, ...]:
    """Return up to ``limit`` names that ``word`` may have been meant for, the nearest first."""
    if len(word) > SHOWN_CHARS:
        return ()
    folded: dict[str, str] = {}
    for name in known:
        folded.setdefault(_fold(name), name)
    meant = _fold(word)
    close = difflib.get_close_matches(meant, folded, n=limit + 5, cutoff=0.6)
    # Among equally near names difflib prefers the last of the alphabet.
    close.sort(key=lambda name: (-difflib.SequenceMatcher(None, name, meant).ratio(), name))
    return tuple(folded[name] for name in close[:limit])


def _fold(word: str) -> str:
    return word.casefold().replace("-", "_")
