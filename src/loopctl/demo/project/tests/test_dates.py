from datetime import date

import pytest

from tally import dates


@pytest.mark.parametrize(
    ("text", "day"),
    [
        ("2026-04-03", date(2026, 4, 3)),
        ("25/12/2026", date(2026, 12, 25)),
        ("12/25/2026", date(2026, 12, 25)),
    ],
)
def test_clear_date_is_read(text: str, day: date) -> None:
    assert dates.parse(text) == day


def test_ambiguous_date_is_read_as_decided() -> None:
    decided = {"day": date(2026, 4, 3), "month": date(2026, 3, 4)}
    assert dates.parse("03/04/2026") == decided[dates.FIRST]
