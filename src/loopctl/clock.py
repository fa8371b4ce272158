"""The one source of time: wall time for what people read, monotonic time for durations."""

import time
from datetime import UTC, datetime
from typing import Protocol


class Clock(Protocol):
    """Where time comes from; a test's clock stands still."""

    def now(self) -> datetime:
        """Return the present moment, in UTC."""
        ...

    def monotonic(self) -> float:
        """Return seconds that never run backwards; only differences mean anything."""
        ...


class SystemClock:
    """The machine's clock."""

    def now(self) -> datetime:
        """Return the present moment, in UTC."""
        return datetime.now(UTC)

    def monotonic(self) -> float:
        """Return seconds that never run backwards."""
        return time.monotonic()


def stamp(moment: datetime) -> str:
    """Return ``moment`` as it stands in every file of a run: ISO 8601, UTC, milliseconds."""
    return moment.isoformat(timespec="milliseconds").replace("+00:00", "Z")
