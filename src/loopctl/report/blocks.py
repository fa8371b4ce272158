"""What a report is made of before it is Markdown, HTML or lines of a terminal.

Text in here is raw: each renderer makes it harmless in its own way (``escape.py``).
"""

from dataclasses import dataclass
from enum import StrEnum


class Tone(StrEnum):
    """How a piece of text is meant; each renderer has its own way to show it."""

    PLAIN = "plain"
    STRONG = "strong"
    QUIET = "quiet"
    GOOD = "good"
    BAD = "bad"
    WARN = "warn"
    CODE = "code"


@dataclass(frozen=True, slots=True)
class Span:
    """A piece of a line."""

    text: str
    tone: Tone = Tone.PLAIN


Line = tuple[Span, ...]
"""One paragraph or list entry; spans follow each other without a gap."""


@dataclass(frozen=True, slots=True)
class Heading:
    """Level 1 is the title of the report."""

    text: str
    level: int = 2


@dataclass(frozen=True, slots=True)
class Paragraph:
    """One paragraph."""

    line: Line


@dataclass(frozen=True, slots=True)
class Verbatim:
    """Text to be shown as it stands: the end of a command's output, a result."""

    text: str


@dataclass(frozen=True, slots=True)
class Shell:
    """Commands to paste, each with a word on what it does."""

    commands: tuple[tuple[str, str], ...]


@dataclass(frozen=True, slots=True)
class Item:
    """A list entry and what stands below it."""

    line: Line
    below: tuple["Block", ...] = ()


@dataclass(frozen=True, slots=True)
class Bullets:
    """A list."""

    items: tuple[Item, ...]


Block = Heading | Paragraph | Verbatim | Shell | Bullets
"""Renderers match on it and end in ``assert_never``."""


def plain(text: str) -> Span:
    """Return text without a tone."""
    return Span(text)


def strong(text: str) -> Span:
    """Return text that stands out."""
    return Span(text, Tone.STRONG)


def quiet(text: str) -> Span:
    """Return text that stands back."""
    return Span(text, Tone.QUIET)


def code(text: str) -> Span:
    """Return a name, command or path."""
    return Span(text, Tone.CODE)
