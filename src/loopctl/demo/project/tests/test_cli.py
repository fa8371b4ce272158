from pathlib import Path

import pytest

from tally.cli import main


def test_each_category_is_one_line(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    file = tmp_path / "expenses.csv"
    file.write_text("date,category,amount\n2026-04-03,food,2.50\n2026-04-01,travel,19\n")
    assert main([str(file)]) == 0
    assert capsys.readouterr().out == "food              2.50\ntravel           19.00\n"
