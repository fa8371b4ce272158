from decimal import Decimal

from tally.amounts import parse, total
from tally.summary import line


def test_ten_cents_and_twenty_are_thirty() -> None:
    assert total([parse("0.10"), parse("0.20")]) == Decimal("0.30")


def test_sum_of_nothing_is_exact_too() -> None:
    assert isinstance(total([]), Decimal)


def test_exact_amount_is_printed_with_two_digits() -> None:
    assert line("food", total([parse("0.10"), parse("0.20")])) == "food              0.30"
