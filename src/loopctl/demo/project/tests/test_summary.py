from datetime import date

from tally.reader import Row
from tally.summary import by_category

ROWS = [
    Row(date(2026, 4, 1), "food", 2),
    Row(date(2026, 4, 2), "travel", 19),
    Row(date(2026, 4, 3), "food", 3),
]


def test_each_category_has_its_sum() -> None:
    assert by_category(ROWS) == {"food": 5, "travel": 19}


def test_only_one_category_can_be_asked_for() -> None:
    assert by_category(ROWS, only="food") == {"food": 5}


def test_category_can_be_left_out() -> None:
    assert by_category(ROWS, skip=["food"]) == {"travel": 19}
