from decimal import Decimal

import pytest

from tally.amounts import parse


@pytest.mark.parametrize(
    ("text", "amount"),
    [
        ("1234.56", "1234.56"),
        ("1,234.56", "1234.56"),
        ("1,234,567.89", "1234567.89"),
        ("1.234,56", "1234.56"),
        ("12,50", "12.50"),
    ],
)
def test_both_ways_of_writing_are_read(text: str, amount: str) -> None:
    assert parse(text) == Decimal(amount)
