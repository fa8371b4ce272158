"""What each kind of manifest value must look like: a reader returns it as the domain has it.

A reader is called with what ``tomllib`` made of the value. It raises :class:`UnfitError` with
every problem of the value; the good path makes no messages and no paths.
"""

import math
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from enum import StrEnum
from typing import Any, Final

from loopctl.tomlsource.scan import Path
from loopctl.tomlsource.words import UNPRINTABLE, show

Reader = Callable[[Any], Any]

MAX_INT: Final = (1 << 63) - 1
MAX_NAME_CHARS: Final = 200
"""Of an id: it becomes part of file names and of git refs."""

_ID: Final = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]*", re.ASCII)
_DRIVE: Final = re.compile(r"[A-Za-z]:")


@dataclass(frozen=True, slots=True)
class Problem:
    """One thing wrong, and where: the text of the fault before its line is known.

    Attributes:
        path: Leads to the value; to the table around it where it is missing.
        message: The whole sentence, but for what ``see`` adds.
        see: Another place, whose line is added: ``first in line N``.
    """

    path: Path
    message: str
    see: Path | None = None


@dataclass(frozen=True, slots=True)
class Flaw:
    """One thing wrong with a value, before it is known which key has it.

    Attributes:
        inner: From the value to the part that is wrong; empty for the value itself.
        shown: The bad part, shown; empty where there is none to show.
        why: The rest of the sentence.
        word: What was probably a misspelling of one of ``known``.
        known: The names that would have been good.
    """

    inner: Path
    shown: str
    why: str
    word: str = ""
    known: tuple[str, ...] = ()


class UnfitError(Exception):
    """A value that its key cannot have. ``args`` are its :class:`Flaw` values."""

    def __init__(self, *flaws: Flaw) -> None:
        super().__init__(*flaws)


def _unfit(value: object, why: str) -> UnfitError:
    return UnfitError(Flaw((), show(value), why))


def text(value: Any) -> str:
    """Read any text; NUL cannot be handed to a command and is refused."""
    if not isinstance(value, str):
        raise _unfit(value, "is no text; write it in quotes")
    if "\0" in value:
        raise _unfit(value, "holds a NUL character")
    return value


def optional_text(value: Any) -> str | None:
    """Read text of which the empty one means none."""
    return text(value) or None


def name(value: Any) -> str:
    """Read text that is shown in one line: not empty, nothing unprintable."""
    line = text(value)
    if not line.strip():
        raise _unfit(line, "is empty")
    if UNPRINTABLE.search(line):
        raise _unfit(line, "holds a line break or another control character")
    return line


def task_id(value: Any) -> str:
    """Read an id, which also names files and git refs."""
    if not isinstance(value, str):
        raise _unfit(value, "is no text; write it in quotes")
    if not _ID.fullmatch(value):
        raise _unfit(
            value,
            "is no id: letters, digits, '.', '_' and '-', beginning with a letter or digit",
        )
    if ".." in value or value.endswith((".", ".lock")):
        raise _unfit(value, "is no id: git allows no '..' and no '.' or '.lock' at its end")
    if len(value) > MAX_NAME_CHARS:
        raise _unfit(value, f"is longer than {MAX_NAME_CHARS} characters")
    return value


def inner_path(value: Any) -> str:
    """Read a path, or a glob, that stays inside the checkout."""
    path = name(value)
    if path.startswith(("/", "\\", "~")) or _DRIVE.match(path):
        raise _unfit(path, "is absolute; name it relative to the checkout")
    if ".." in re.split(r"[/\\]", path):
        raise _unfit(path, "leaves the checkout; '..' is not allowed")
    return path


def optional_path(value: Any) -> str | None:
    """Read a path inside the checkout, of which the empty one means none."""
    return None if value == "" else inner_path(value)


def whole(value: Any) -> int:
    """Read a whole number of 0 or more."""
    if isinstance(value, bool) or not isinstance(value, int):
        raise _unfit(value, "is no whole number")
    if value < 0:
        raise _unfit(value, "is negative")
    if value > MAX_INT:
        raise _unfit(value, "is too large")
    return value


def amount(value: Any) -> float:
    """Read a finite number of 0 or more."""
    if isinstance(value, bool) or not isinstance(value, int | float):
        raise _unfit(value, "is no number")
    if value < 0:
        raise _unfit(value, "is negative")
    if value > MAX_INT or not math.isfinite(value):
        raise _unfit(value, "is not finite" if isinstance(value, float) else "is too large")
    return float(value)


def one_of(words: type[StrEnum]) -> Reader:
    """Return a reader of one member of ``words``."""
    return word_of({str(member): member for member in words})


def word_of(members: Mapping[str, Any]) -> Reader:
    """Return a reader of one of the words that ``members`` names."""
    known = tuple(members)

    def read(value: Any) -> Any:
        # A list or a table cannot be looked up.
        if isinstance(value, str) and value in members:
            return members[value]
        word = value if isinstance(value, str) else ""
        why = f"is not one of {', '.join(known)}"
        raise UnfitError(Flaw((), show(value), why, word, known))

    return read


def list_of(read_element: Reader, elements: str) -> Reader:
    """Return a reader of a list, as a tuple; ``elements`` names what is in it."""

    def read(value: Any) -> tuple[Any, ...]:
        if not isinstance(value, list):
            raise _unfit(value, f"is no list of {elements}; write [...]")
        try:
            return tuple([read_element(element) for element in value])
        except UnfitError:
            raise UnfitError(*_element_flaws(read_element, value)) from None

    return read


def _element_flaws(read_element: Reader, elements: list[Any]) -> list[Flaw]:
    flaws: list[Flaw] = []
    for index, element in enumerate(elements):
        try:
            read_element(element)
        except UnfitError as exc:
            flaws.extend(_within(index, flaw) for flaw in exc.args)
    return flaws


def _within(key: str | int, flaw: Flaw) -> Flaw:
    return Flaw((key, *flaw.inner), flaw.shown, flaw.why, flaw.word, flaw.known)


def read_table(table: Any, readers: Mapping[str, Reader]) -> dict[str, Any]:
    """Return the values of a table, read, in the order of the file.

    Raises:
        UnfitError: It is no table.
        UnfitTableError: It has keys that ``readers`` does not know, or values that do not fit;
            ``partial`` holds the others.
    """
    if not isinstance(table, dict):
        raise _unfit(table, "is no table")
    values: dict[str, Any] = {}
    flaws: list[Flaw] = []
    for key, value in table.items():
        read = readers.get(key)
        if read is None:
            flaws.append(Flaw((key,), "", "unknown key", key, tuple(readers)))
            continue
        try:
            values[key] = read(value)
        except UnfitError as exc:
            flaws.extend(_within(key, flaw) for flaw in exc.args)
            if isinstance(exc, UnfitTableError):
                values[key] = exc.partial
    if flaws:
        raise UnfitTableError(values, *flaws)
    return values


class UnfitTableError(UnfitError):
    """A table of which some keys do not fit; ``partial`` holds what could be read."""

    def __init__(self, partial: dict[str, Any], *flaws: Flaw) -> None:
        super().__init__(*flaws)
        self.partial = partial
