from datetime import UTC, datetime

import pytest

from loopctl.worker.model.failures import retry_after_s

NOW = datetime(2026, 1, 2, 3, 4, 5, tzinfo=UTC)


@pytest.mark.parametrize(
    ("headers", "seconds"),
    [
        ({"Retry-After": "7"}, 7.0),
        ({"retry-after": " 1.5 "}, 1.5),
        ({"Retry-After-Ms": "250", "Retry-After": "9"}, 0.25),
        ({"Retry-After": "Fri, 02 Jan 2026 03:04:15 GMT"}, 10.0),
        ({"Retry-After": "Fri, 02 Jan 2026 03:04:15 -0000"}, 10.0),
        ({"Retry-After": "Thu, 01 Jan 2026 00:00:00 GMT"}, 0.0),
        ({"Retry-After": "-3"}, 0.0),
        ({"Retry-After": "inf"}, None),
        ({"Retry-After": "nan"}, None),
        ({"Retry-After": "soon"}, None),
        ({"Retry-After": ""}, None),
        ({}, None),
    ],
)
def test_seconds_are_read_in_all_forms_and_nonsense_is_none(
    headers: dict[str, str], seconds: float | None
) -> None:
    assert retry_after_s(headers, NOW) == seconds
