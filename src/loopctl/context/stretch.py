"""A stretch of a past: entries in a row that one summary is to stand for; pure."""

from dataclasses import dataclass, field, replace
from typing import Final

from loopctl.domain import Limits
from loopctl.past import Past, Summary, Turn, text_bytes

Entries = tuple[Turn, ...] | tuple[Summary, ...]
"""Turns, or summaries that become one; the oldest of their kind in their past."""

CUT: Final = "\n[... shortened ...]\n"
"""Stands where a text was cut in its middle."""


@dataclass(frozen=True, slots=True)
class Stretch:
    """What a summary is ordered of.

    Attributes:
        task: Whose past it is, and who pays.
        entries: At least one.
        limit_bytes: Of the summary's text.
        caps: Of the task.
    """

    task: str
    entries: Entries
    limit_bytes: int
    caps: Limits = field(default_factory=Limits)

    @property
    def is_merge(self) -> bool:
        """Its entries are summaries already: no turn is summarised again."""
        return isinstance(self.entries[0], Summary)

    @property
    def first(self) -> int:
        """The number of its first turn."""
        return bounds(self.entries[0])[0]

    @property
    def last(self) -> int:
        """The number of its last turn."""
        return bounds(self.entries[-1])[1]

    def is_in(self, past: Past) -> bool:
        """Return whether ``past`` still has the stretch where it was."""
        count = len(self.entries)
        return self.entries in (past.summaries[:count], past.turns[:count])

    def replaced(self, past: Past, text: str) -> Past:
        """Return ``past``, which has the stretch, with ``text`` in its place."""
        summary, count = Summary(self.first, self.last, text), len(self.entries)
        if self.is_merge:
            return replace(past, summaries=(summary, *past.summaries[count:]))
        return Past((*past.summaries, summary), past.turns[count:])


def bounds(entry: Turn | Summary) -> tuple[int, int]:
    """Return the numbers of the first and the last turn that an entry stands for."""
    return (entry.number, entry.number) if isinstance(entry, Turn) else (entry.first, entry.last)


def cut(text: str, limit_bytes: int) -> str:
    """Return ``text``, its middle left out where it is longer than ``limit_bytes`` in UTF-8."""
    if text_bytes(text) <= limit_bytes:
        return text
    raw = text.encode("utf-8", "replace")
    room = limit_bytes - len(CUT)
    if room <= 0:
        return _decoded(raw[: max(0, limit_bytes)])
    head = room - room // 2
    return _decoded(raw[:head]) + CUT + _decoded(raw[len(raw) - room // 2 :])


def _decoded(raw: bytes) -> str:
    # A character that the cut went through is left out.
    return raw.decode("utf-8", "ignore")
