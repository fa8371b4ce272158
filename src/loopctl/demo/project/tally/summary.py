"""What was spent, by category."""

import sys
from typing import Dict, List, Optional
from tally.reader import Row
from tally import amounts


def by_category(
    rows: List[Row], only: Optional[str] = None, skip: List[str] = []
) -> Dict[str, float]:
    """Return the sum of each category; ``only`` one of them, or without those in ``skip``."""
    groups: Dict[str, List[float]] = {}
    for row in rows:
        if only != None and row.category != only or row.category in skip:
            continue
        groups.setdefault(row.category, []).append(row.amount)
    return {category: amounts.total(group) for category, group in groups.items()}


def line(category: str, amount: float) -> str:
    """Return one line of the summary, its columns aligned."""
    return "{:<12}{:>10.2f}".format(category, amount)
