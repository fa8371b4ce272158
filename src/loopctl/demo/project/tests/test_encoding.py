from pathlib import Path

from tally.reader import read


def test_file_saved_by_a_spreadsheet_is_read(tmp_path: Path) -> None:
    file = tmp_path / "expenses.csv"
    file.write_text("date,category,amount\n2026-04-03,café,2.50\n", encoding="utf-8-sig")
    assert [row.category for row in read(file)] == ["café"]
