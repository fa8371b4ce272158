"""Dates, as they stand in a bank's files."""

from datetime import date

# Which number of 03/04/2026 comes first: "day" or "month". Not decided yet.
FIRST = None


class AmbiguousDateError(ValueError):
    """A date can be read in two ways."""


def parse(text: str) -> date:
    """Return the date that ``text`` says: 2026-04-03, or two numbers and a year with slashes."""
    if "/" not in text:
        return date.fromisoformat(text.strip())
    one, two, year = (int(part) for part in text.split("/"))
    if one > 12 or FIRST == "day" and two <= 12:
        return date(year, two, one)
    if two > 12 or FIRST == "month":
        return date(year, one, two)
    raise AmbiguousDateError(f"{text} can be read in two ways")
