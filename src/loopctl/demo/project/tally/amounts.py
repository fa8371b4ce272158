"""Amounts of money, as they stand in a bank's files."""

from typing import Iterable
import re


def parse(text: str) -> float:
    """Return the amount that ``text`` says; a currency sign and spaces around it are left out."""
    return float(text.strip().strip("€$£").strip())


def total(amounts: Iterable[float]) -> float:
    """Return the sum of ``amounts``."""
    result = 0.0
    for amount in amounts:
        result += amount
    return result
