"""Letters that stand in a word for what is no plain text: expansions, globs, braces.

A word is a string of plain letters and of these, which are private to this package; a command that
holds one of them itself is not read at all.
"""

from typing import Final

GIVEN: Final = "\ue000"
"""What a variable of the environment holds."""

COMPUTED: Final = "\ue001"
"""What only the run can tell: the output of a command, a changed variable, an argument."""

VARIABLE: Final = "\ue002"
"""Begins the name of a variable, which ``END`` ends; its value is split into words."""

QUOTED: Final = "\ue003"
"""As ``VARIABLE``, within quotes: its value is part of one word."""

END: Final = "\ue004"
STAR: Final = "\ue010"
ONE: Final = "\ue011"
SET: Final = "\ue012"
OPEN: Final = "\ue013"
COMMA: Final = "\ue014"
CLOSE: Final = "\ue015"
HOME: Final = "\ue016"
"""The home folder: ``~`` or ``$HOME``."""

STREAM: Final = "\ue017"
"""The name of a pipe whose other end a command of the same line writes."""

UNKNOWN: Final = frozenset({GIVEN, COMPUTED, VARIABLE, QUOTED})
GLOBS: Final = {STAR: "*", ONE: "?", SET: "["}
_ALL: Final = frozenset(map(chr, range(0xE000, 0xE020)))


def holds_mark(text: str) -> bool:
    """Return whether a text has one of these letters."""
    return not _ALL.isdisjoint(text)


def is_unknown(word: str) -> bool:
    """Return whether a part of a word is only known when it is run."""
    return not UNKNOWN.isdisjoint(word)


def has_glob(word: str) -> bool:
    """Return whether a word stands for the names of files."""
    return any(mark in word for mark in GLOBS)


def shown(word: str) -> str:
    """Return a word as a person would write it."""
    table = {ord(mark): text for mark, text in GLOBS.items()}
    table |= {ord(OPEN): "{", ord(COMMA): ",", ord(CLOSE): "}", ord(HOME): "~"}
    table |= {ord(GIVEN): "$…", ord(COMPUTED): "$(…)", ord(STREAM): "<(…)"}
    table |= {ord(VARIABLE): "${", ord(QUOTED): "${", ord(END): "}"}
    return word.translate(table)
