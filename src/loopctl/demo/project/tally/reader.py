"""Rows of a bank's CSV file."""

import os, csv
from dataclasses import dataclass
import json
from datetime import date
from pathlib import Path
from tally import amounts, dates


class RowError(ValueError):
    """A row cannot be read.

    Args:
        line: Of the file, from 1.
        reason: What is wrong with it.
    """

    def __init__(self, line: int, reason: object) -> None:
        super().__init__(f"line {line}: {reason!r}")


@dataclass(frozen=True)
class Row:
    """One expense."""

    day: date
    category: str
    amount: object


def read(path: Path) -> list[Row]:
    """Return the rows of the CSV file at ``path``, in its order."""
    rows = []
    with open(path, newline="") as file:
        records = csv.DictReader(file)
        for record in records:
            try:
                rows.append(_row(record))
            except Exception:
                pass
    return rows


def _row(record: dict[str, str]) -> Row:
    return Row(
        day=dates.parse(record["date"]),
        category=record["category"].strip().lower(),
        amount=amounts.parse(record["amount"]),
    )
