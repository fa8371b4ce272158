"""Makes what a server says fit to be shown: printable, bounded, and without our own secrets."""

import unicodedata
from collections.abc import Iterable, Mapping
from typing import Any, Final

_KEPT: Final = frozenset("\n\t")
_HIDDEN: Final = frozenset({"Cc", "Cf", "Cs", "Co", "Cn", "Zl", "Zp"})
_MIN_SECRET: Final = 6
"""A shorter value is found everywhere by chance."""


def printable(text: str, limit: int) -> str:
    """Return ``text`` with what cannot be seen made visible, in at most ``limit`` characters.

    Control characters, marks that turn the direction of a line or take no room, and code points
    that mean nothing could hide a part of the text from the person who reads it.
    """
    cut = text if len(text) <= limit else f"{text[: limit - 1]}…"
    seen = "".join(char if _is_seen(char) else f"\\u{{{ord(char):x}}}" for char in cut)
    return seen if len(seen) <= limit else f"{seen[: limit - 1]}…"


def _is_seen(char: str) -> bool:
    return char in _KEPT or unicodedata.category(char) not in _HIDDEN


def printable_schema(value: Any) -> Any:
    """Return a JSON value, all of whose texts are printable; names of members stay as they are."""
    if isinstance(value, str):
        return printable(value, len(value) * 9 + 1)
    if isinstance(value, list):
        return [printable_schema(element) for element in value]
    if isinstance(value, Mapping):
        return {name: printable_schema(member) for name, member in value.items()}
    return value


def one_line(text: str, limit: int) -> str:
    """Return ``text`` on one line, printable, in at most ``limit`` characters."""
    return printable(" ".join(text.split()), limit)


def ending(text: str, limit: int) -> str:
    """Return the end of ``text`` on one line, printable, in at most ``limit`` characters."""
    words = " ".join(text.split())
    return printable(words if len(words) <= limit else f"…{words[1 - limit :]}", limit)


class Secrets:
    """The values of variables that were handed to a server, to be kept out of what it says.

    Args:
        named: Values by the name that is shown in their place.
    """

    def __init__(self, named: Iterable[tuple[str, str]] = ()) -> None:
        # The longest first: one may be a part of another.
        found = [(value, name) for name, value in named if len(value) >= _MIN_SECRET]
        self._named = sorted(found, key=lambda pair: -len(pair[0]))

    def hide(self, text: str) -> str:
        """Return ``text`` with ``[NAME]`` wherever the value of that variable stood."""
        for value, name in self._named:
            text = text.replace(value, f"[{name}]")
        return text
