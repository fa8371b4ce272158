"""Finds keys and values in the text of a TOML document that ``tomllib`` has accepted.

``tomllib`` gives values without places. The good path needs no places, so they are made here,
only when there is a fault to name or a value to replace. The scanner relies on the text being
valid: it tells the pieces apart, it does not judge them.

A *path* leads to a value from the root of the document: names of tables and keys, and indices
into arrays. ``("task", 2, "budget", "usd")`` is the cap of the third task.
"""

import re
import tomllib
from bisect import bisect_right
from collections.abc import Generator, Iterator
from dataclasses import dataclass
from typing import Final

Path = tuple[str | int, ...]

_STRING: Final = (
    r'"""(?:[^"\\]++|\\[\s\S]|"{1,2}+(?!"))*"""(?:"{0,2})'
    r"|'''(?:[^']++|'{1,2}+(?!'))*'''(?:'{0,2})"
    r'|"(?:[^"\\\n]++|\\.)*"'
    r"|'[^'\n]*+'"
)
# A date and its time may stand apart by one space.
_BARE: Final = r"\d{4}-\d\d-\d\d(?:[Tt ]\d\d:[^\s,\]}#]*+)?|[^\s,\[\]{}#\"']++"
_BLANK: Final = r"(?:[ \t\r\n]++|#[^\n]*+)*"
_NAME: Final = r"[A-Za-z0-9_-]++"

_SKIP: Final = re.compile(_BLANK)
_SKIP_COMMAS: Final = re.compile(r"(?:[ \t\r\n,]++|#[^\n]*+)*")
_SIMPLE: Final = re.compile(rf"({_NAME})[ \t]*+=[ \t]*+({_STRING}|{_BARE})")
_VALUE: Final = re.compile(rf"{_STRING}|{_BARE}")
_KEY_PART: Final = re.compile(
    rf"""[ \t]*+(?:({_NAME})|("(?:[^"\\\n]++|\\.)*"|'[^'\n]*+'))[ \t]*+"""
)
_EQUALS: Final = re.compile(r"=[ \t]*+")


@dataclass(frozen=True, slots=True)
class Place:
    """Where something stands, in characters from the start of the text.

    Attributes:
        path: What stands here.
        start: Of its key, of its header line, or of the element of an array.
        value: From and up to where its value stands; ``None`` for a table with a header.
    """

    path: Path
    start: int
    value: tuple[int, int] | None


def scan(text: str) -> Iterator[Place]:
    """Yield a place for every header, key and array element, in the order of the text.

    A table may come more than once, with every header that goes through it.
    """
    table: Path = ()
    arrays: dict[Path, int] = {}
    at = _skip(_SKIP, text, 0)
    while at < len(text):
        if text[at] == "[":
            table, end = _header(text, at, arrays)
            for depth in range(1, len(table) + 1):
                yield Place(table[:depth], at, None)
            at = end
        elif simple := _SIMPLE.match(text, at):
            yield Place((*table, simple[1]), at, simple.span(2))
            at = simple.end()
        else:
            at = yield from _assignment(text, at, table)
        at = _skip(_SKIP, text, at)


def _header(text: str, at: int, arrays: dict[Path, int]) -> tuple[Path, int]:
    is_array = text.startswith("[[", at)
    names, end = _names(text, at + (2 if is_array else 1))
    table: Path = ()
    for depth, name in enumerate(names, start=1):
        table = (*table, name)
        if is_array and depth == len(names):
            arrays[table] = arrays.get(table, -1) + 1
        if table in arrays:
            table = (*table, arrays[table])
    return table, end + (2 if is_array else 1)


def _names(text: str, at: int) -> tuple[list[str], int]:
    """Return the parts of a dotted key and where it ends."""
    names: list[str] = []
    while True:
        part = _matched(_KEY_PART.match(text, at), at)
        names.append(part[1] or str(tomllib.loads(f"v = {part[2]}")["v"]))
        at = part.end()
        if not text.startswith(".", at):
            return names, at
        at += 1


def _assignment(text: str, start: int, table: Path) -> Generator[Place, None, int]:
    """Yield the places of one key and what is in its value; the generator returns the end."""
    names, at = _names(text, start)
    at = _matched(_EQUALS.match(text, at), at).end()
    for depth in range(1, len(names)):
        yield Place((*table, *names[:depth]), start, None)
    path = (*table, *names)
    inner, end = _value(text, at, path)
    yield Place(path, start, (at, end))
    yield from inner
    return end


def _value(text: str, at: int, path: Path) -> tuple[list[Place], int]:
    """Return the places inside a value, none for a plain one, and where the value ends."""
    opening = text[at : at + 1]
    if opening not in ("[", "{"):
        return [], _matched(_VALUE.match(text, at), at).end()
    places: list[Place] = []
    closing = "]" if opening == "[" else "}"
    index = 0
    at = _skip(_SKIP_COMMAS, text, at + 1)
    while not text.startswith(closing, at):
        start, inner_path = at, (*path, index)
        if opening == "{":
            names, at = _names(text, at)
            at = _matched(_EQUALS.match(text, at), at).end()
            inner_path = (*path, *names)
        inner, end = _value(text, at, inner_path)
        places.append(Place(inner_path, start, (at, end)))
        places.extend(inner)
        index += 1
        at = _skip(_SKIP_COMMAS, text, end)
    return places, at + 1


def _skip(blank: re.Pattern[str], text: str, at: int) -> int:
    return _matched(blank.match(text, at), at).end()


def _matched(match: re.Match[str] | None, at: int) -> re.Match[str]:
    if match is None:
        raise ValueError(f"no TOML at character {at}")
    return match


class Places:
    """All places of one text, by path; made at the first question.

    Args:
        text: Accepted by ``tomllib``; may have any line endings.
    """

    def __init__(self, text: str) -> None:
        self._text = text
        self._places: dict[Path, Place] | None = None
        self._line_starts: list[int] = []

    def find(self, path: Path) -> Place | None:
        """Return where ``path`` stands first, ``None`` where the text does not have it."""
        if self._places is None:
            self._places = {}
            for place in scan(self._text):
                self._places.setdefault(place.path, place)
        return self._places.get(path)

    def start(self, path: Path) -> int:
        """Return where ``path``, or else the nearest table around it, begins; -1 if nowhere."""
        while path:
            place = self.find(path)
            if place is not None:
                return place.start
            path = path[:-1]
        return -1

    def line(self, path: Path) -> int:
        """Return the line, from 1, of ``path`` or of the nearest table around it; 0 if none."""
        return self.line_at(self.start(path))

    def line_at(self, offset: int) -> int:
        """Return the line, from 1, in which a character stands; 0 for one before the text."""
        if not self._line_starts:
            self._line_starts = [0, *(match.end() for match in re.finditer("\n", self._text))]
        return bisect_right(self._line_starts, offset)
