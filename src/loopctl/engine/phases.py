"""Where the time of one step goes: its phases, measured with the clock."""

from collections.abc import Iterator
from contextlib import contextmanager
from enum import StrEnum

from loopctl.clock import Clock


class Phase(StrEnum):
    """A part of a step, in the order in which they follow each other."""

    PLAN = "plan"
    PURSUE = "pursue"
    OBSERVE = "observe"
    REFLECT = "reflect"


class Stopwatch:
    """The phases of one step; made when the step begins, in the phase ``plan``.

    Args:
        clock: The run's.
        overhead_ms: What the harness itself has spent for the step already.
    """

    def __init__(self, clock: Clock, overhead_ms: float = 0.0) -> None:
        self._clock = clock
        self._began = clock.monotonic()
        self._starts: dict[Phase, float] = {Phase.PLAN: 0.0}
        self.overhead_ms = overhead_ms

    def enter(self, phase: Phase) -> None:
        """Begin a phase, and thereby end the one before it."""
        self._starts[phase] = self._passed()

    @contextmanager
    def own(self) -> Iterator[None]:
        """Count what is done inside as the harness's own part."""
        began = self._passed()
        yield
        self.overhead_ms += self._passed() - began

    def until_ms(self, phase: Phase) -> int:
        """Return when a phase began, in whole milliseconds after the step's start."""
        return round(self._starts[phase])

    def offsets_ms(self) -> tuple[tuple[str, float], ...]:
        """Return each phase with when it began: milliseconds after the step's start."""
        return tuple((phase.value, round(start, 3)) for phase, start in self._starts.items())

    def passed_ms(self) -> int:
        """Return how long the step has gone on so far, in whole milliseconds."""
        return round(self._passed())

    def _passed(self) -> float:
        return (self._clock.monotonic() - self._began) * 1000
