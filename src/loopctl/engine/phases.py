"""Where the time of one step goes: its phases, measured with the clock."""

from enum import StrEnum

from loopctl.clock import Clock


class Phase(StrEnum):
    """A part of a step, in the order in which they follow each other."""

    PLAN = "plan"
    PURSUE = "pursue"
    OBSERVE = "observe"
    REFLECT = "reflect"


class Stopwatch:
    """The phases of one step; made when the step begins, in the phase ``plan``."""

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._began = clock.monotonic()
        self._starts: dict[Phase, float] = {Phase.PLAN: 0.0}

    def enter(self, phase: Phase) -> None:
        """Begin a phase, and thereby end the one before it."""
        self._starts[phase] = (self._clock.monotonic() - self._began) * 1000

    def ms(self, phase: Phase) -> float:
        """Return how long a phase took, in milliseconds; the one after it must have begun."""
        phases = list(Phase)
        after = phases[phases.index(phase) + 1]
        return self._starts[after] - self._starts[phase]

    def whole_ms(self, phase: Phase) -> int:
        """Return :meth:`ms` in whole milliseconds."""
        return round(self.ms(phase))

    def offsets_ms(self) -> tuple[tuple[str, float], ...]:
        """Return each phase with when it began: milliseconds after the step's start."""
        return tuple((phase.value, round(start, 3)) for phase, start in self._starts.items())
