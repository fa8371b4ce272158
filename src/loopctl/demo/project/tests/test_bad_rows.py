from pathlib import Path

import pytest

from tally.reader import RowError, read


def test_row_that_cannot_be_read_is_named(tmp_path: Path) -> None:
    file = tmp_path / "expenses.csv"
    file.write_text("date,category,amount\n2026-04-03,food,2.50\nyesterday,food,3\n")
    with pytest.raises(RowError, match="line 3"):
        read(file)
