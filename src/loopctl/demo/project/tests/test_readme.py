from pathlib import Path

from tally import dates


def test_readme_says_how_an_ambiguous_date_is_read() -> None:
    text = (Path(__file__).parent.parent / "README.md").read_text(encoding="utf-8")
    assert f"03/04/2026 is {dates.parse('03/04/2026').isoformat()}" in text
