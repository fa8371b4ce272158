"""Checks ``audit.jsonl`` of a run: against itself, and against the events that it is made from.

The first line that is not as it should be is named. Which entries there should be follows from
``events.jsonl``; which of the two files was changed is told by the chain, which holds together
only where nobody has touched it.
"""

import hashlib
import json
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from loopctl.store import audit, eventlog
from loopctl.store.audit import GENESIS, Chain, hash_of, read_entry

CHANGED: Final = "changed"
DROPPED: Final = "dropped"
INSERTED: Final = "inserted"
REORDERED: Final = "reordered"


@dataclass(frozen=True, slots=True)
class Flaw:
    """The first thing that is wrong with a chain.

    Attributes:
        path: The file.
        line: 1-based.
        kind: ``changed``, ``dropped``, ``inserted`` or ``reordered``.
        why: In words.
    """

    path: Path
    line: int
    kind: str
    why: str

    def __str__(self) -> str:
        return f"{self.path}:{self.line}: {self.kind}: {self.why}"


@dataclass(frozen=True, slots=True)
class Checked:
    """What was found in one run's folder.

    Attributes:
        entries: How many lines the chain has.
        head: The hash of its last one; :data:`~loopctl.store.audit.GENESIS` where it is empty.
    """

    entries: int
    head: str
    flaw: Flaw | None = None


def check(folder: Path, *, is_open: bool = False) -> Checked:
    """Return how the chain of the run in ``folder`` stands.

    Args:
        folder: Of the run.
        is_open: A process drives the run now, or was killed while it did: the last event may
            have no entry yet, and more may be written while this looks.
    """
    # The events first: an entry that comes in between then only goes further than they do.
    events = eventlog.read_lines(folder)
    path = folder / audit.FILE_NAME
    content = path.read_bytes() if path.exists() else b""
    lines = content.splitlines(keepends=True)
    is_torn = bool(lines) and not lines[-1].endswith(b"\n")
    if is_torn and is_open:
        lines.pop()
    found = [line.rstrip(b"\n") for line in lines]
    last = read_entry(found[-1]) if found else None
    head = str(last["hash"]) if last else GENESIS
    flaw = _Comparison(folder, found, events, is_open=is_open).flaw()
    if flaw is None and is_torn and not is_open:
        flaw = Flaw(path, len(lines), CHANGED, "the last line is not whole")
    return Checked(len(found), head, flaw)


class _Comparison:
    """The entries that are there beside those that the events ask for."""

    def __init__(
        self, folder: Path, found: Sequence[bytes], events: Sequence[bytes], *, is_open: bool
    ) -> None:
        self._audit = folder / audit.FILE_NAME
        self._log = folder / eventlog.FILE_NAME
        self._found = found
        self._events = events
        self._is_open = is_open
        self._wanted: list[bytes] = []
        self._numbers: list[int] = []
        self._bad_event = self._derive()

    def flaw(self) -> Flaw | None:
        """Return the first flaw."""
        pairs = enumerate(zip(self._found, self._wanted, strict=False))
        at = next((at for at, (one, other) in pairs if one != other), None)
        if at is not None:
            return self._at(at)
        if self._bad_event is not None:
            return self._bad_event
        if len(self._found) < len(self._wanted):
            return self._cut()
        return self._surplus() if len(self._found) > len(self._wanted) else None

    def _derive(self) -> Flaw | None:
        """Make the entries that the events ask for, up to the first line that is no event."""
        chain = Chain()
        for number, line in enumerate(self._events, 1):
            try:
                entry = chain.grow(line)
            except ValueError:
                return Flaw(self._log, number, CHANGED, "this is no event that this loop knows")
            if _number(line) != number:
                return self._misplaced(number)
            if entry:
                self._wanted.append(entry.rstrip(b"\n"))
                self._numbers.append(number)
        return None

    def _at(self, at: int) -> Flaw:
        """Return the flaw at the first entry that is another than the events ask for."""
        loose = self._first_loose()
        if loose is None or loose > at + 1:
            return self._consistent(at)
        one, due = self._found[at], self._wanted[at]
        later_found, later_due = self._found[at + 1 :], self._wanted[at + 1 :]
        if one in later_due:
            place = self._wanted.index(one) + 1
            if due in later_found:
                return Flaw(self._audit, at + 1, REORDERED, f"this entry belongs to line {place}")
            return self._missing(at, place - 1 - at)
        if due in later_found:
            return Flaw(self._audit, at + 1, INSERTED, "no event stands behind this entry")
        entry = read_entry(one)
        why = "this is no entry" if entry is None else "it does not fit the event that it names"
        if entry is not None and hash_of(entry) != entry["hash"]:
            why = "its contents do not fit its hash"
        return Flaw(self._audit, at + 1, CHANGED, why)

    def _consistent(self, at: int) -> Flaw:
        """Return the flaw where the chain holds together: an event was changed, or all of it."""
        entry = read_entry(self._found[at]) or {}
        event, number = entry["event"], self._numbers[at]
        if 0 < event <= len(self._events):
            digest = hashlib.sha256(self._events[event - 1]).hexdigest()
            if digest == entry["digest"]:
                kind = DROPPED if event > number else CHANGED
                why = f"the chain was made anew from here on, without the entry of event {number}"
                return Flaw(self._audit, at + 1, kind, why)
        why = f"it is not the event that {self._audit.name}:{at + 1} was made from"
        return Flaw(self._log, number, CHANGED, why)

    def _misplaced(self, at: int) -> Flaw:
        """Return the flaw of an event whose number is not that of its line."""
        number = _number(self._events[at - 1])
        later = {_number(line) for line in self._events[at:]}
        if number < at:
            return Flaw(self._log, at, INSERTED, f"a second event has the number {number}")
        kind = REORDERED if at in later else DROPPED
        return Flaw(self._log, at, kind, f"event {number} stands where event {at} belongs")

    def _first_loose(self) -> int | None:
        """Return the first entry that does not hold together with the one before it."""
        last = GENESIS
        for at, line in enumerate(self._found):
            entry = read_entry(line)
            if entry is None or entry["prev"] != last or entry["seq"] != at + 1:
                return at
            if hash_of(entry) != entry["hash"]:
                return at
            last = entry["hash"]
        return None

    def _missing(self, at: int, count: int) -> Flaw:
        words = "an entry is" if count == 1 else f"{count} entries are"
        return Flaw(self._audit, at + 1, DROPPED, f"{words} missing before this line")

    def _cut(self) -> Flaw | None:
        """Return the flaw of a chain that ends too early, where no crash explains it."""
        at, count = len(self._found), len(self._wanted) - len(self._found)
        if self._is_open and count == 1 and self._numbers[-1] == len(self._events):
            return None
        words = "the last entry is missing" if count == 1 else f"the last {count} are missing"
        return Flaw(self._audit, at + 1, DROPPED, words)

    def _surplus(self) -> Flaw | None:
        """Return the flaw of a chain that goes further than the events."""
        at = len(self._wanted)
        entry = read_entry(self._found[at])
        is_ahead = entry is not None and entry["event"] > len(self._events)
        loose = self._first_loose()
        if loose is not None or entry is None or not is_ahead:
            return Flaw(self._audit, at + 1, INSERTED, "no event stands behind this entry")
        if self._is_open:
            return None
        why = f"event {entry['event']}, which {self._audit.name}:{at + 1} is made from, is missing"
        return Flaw(self._log, len(self._events) + 1, DROPPED, why)


def _number(line: bytes) -> int:
    try:
        return int(json.loads(line)["seq"])
    except (ValueError, KeyError, TypeError):
        return 0
