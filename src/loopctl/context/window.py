"""How much of a past a window holds, and which part of it has to become a summary; pure.

Tokens are not counted but estimated, since each model counts them in its own way: four bytes of
UTF-8 are one. That is about right for English and code, and too few bytes for no script.
"""

from dataclasses import dataclass, replace
from typing import Final

from loopctl.context.stretch import Entries, cut
from loopctl.past import SUMMARY_BYTES, Past, text_bytes

BYTES_PER_TOKEN: Final = 4

SUMMARIES: Final = 8
"""A past with more of them has its older ones merged ahead."""


@dataclass(frozen=True, slots=True)
class Window:
    """The room for one past.

    Attributes:
        threshold_events: Turns since the last summary at which the next one is begun; 0 for none:
            then a past is summarised only where it no longer fits.
        tokens: What it holds; estimated at ``BYTES_PER_TOKEN``.
    """

    threshold_events: int
    tokens: int

    @property
    def size_bytes(self) -> int:
        """What it holds, in bytes of UTF-8."""
        return self.tokens * BYTES_PER_TOKEN

    @property
    def summary_bytes(self) -> int:
        """What one summary may take: a sixth of the window at most."""
        return min(SUMMARY_BYTES, self.size_bytes // 6)

    def holds(self, past: Past) -> bool:
        """Return whether ``past`` fits."""
        return past.size_bytes <= self.size_bytes

    def due(self, past: Past) -> Entries:
        """Return what should become one summary ahead of need; empty for nothing.

        The newer half of the threshold is left as it was: turns that are looked back at most.
        """
        if not self.threshold_events:
            return ()
        kept = max(1, self.threshold_events // 2)
        if len(past.turns) >= self.threshold_events and len(past.turns) > kept:
            return past.turns[:-kept]
        if len(past.summaries) > SUMMARIES or self._is_crowded(past):
            return past.summaries[: (len(past.summaries) + 1) // 2]
        return ()

    def overdue(self, past: Past) -> Entries:
        """Return what has to become one summary at once, in a past that no longer fits.

        Somebody waits for it, so it makes more room than :meth:`due`: the turns that are left
        take a third of the window, and the summaries no more than another. The newest turn stays.
        """
        kept, taken = 0, 0
        for turn in reversed(past.turns):
            taken += text_bytes(turn.text)
            if kept and taken > self.size_bytes // 3:
                break
            kept += 1
        if len(past.turns) > kept:
            return past.turns[: len(past.turns) - kept]
        return past.summaries if self._is_crowded(past) else ()

    def clipped(self, past: Past) -> Past:
        """Return the past cut down to the window, where nothing of it is overdue any more.

        Only what is larger than two thirds of the window by itself is ever cut; no turn is where
        the window has 1,229 tokens or more.
        """
        if self.holds(past):
            return past
        if len(past.summaries) == 1:
            (only,) = past.summaries
            past = replace(
                past, summaries=(replace(only, text=cut(only.text, self.size_bytes // 3)),)
            )
        rest = self.size_bytes - Past(past.summaries).size_bytes
        turns = tuple(replace(turn, text=cut(turn.text, rest)) for turn in past.turns[-1:])
        return past if self.holds(past) else replace(past, turns=(*past.turns[:-1], *turns))

    def _is_crowded(self, past: Past) -> bool:
        taken = Past(past.summaries).size_bytes
        return len(past.summaries) > 1 and taken > self.size_bytes // 3
