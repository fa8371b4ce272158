from datetime import date
from pathlib import Path

from tally.reader import read


def test_rows_come_in_the_order_of_the_file(tmp_path: Path) -> None:
    file = tmp_path / "expenses.csv"
    file.write_text("date,category,amount\n2026-04-03,Food,2.50\n2026-04-01,travel,19\n")
    rows = read(file)
    assert [(row.day, row.category) for row in rows] == [
        (date(2026, 4, 3), "food"),
        (date(2026, 4, 1), "travel"),
    ]
