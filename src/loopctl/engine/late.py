"""Answers that come while their run is going: what another process has recorded, and is not told."""

from collections.abc import Callable, Iterable, Sequence

from loopctl.domain import Decision, TaskId
from loopctl.events import AnyEvent, DecisionAnswered
from loopctl.storeports import DecisionStore


class LateAnswers:
    """Looked at by the driver at each frontier.

    Args:
        run_id: Of the run that is driven.
        decisions: Where other processes record answers.
        events: Returns the events of the run so far.
        widen: Takes tasks into the scope of this drive.
    """

    def __init__(
        self,
        run_id: str,
        decisions: DecisionStore,
        events: Callable[[], Iterable[AnyEvent]],
        widen: Callable[[Sequence[TaskId]], None],
    ) -> None:
        self._run_id = run_id
        self._decisions = decisions
        self.events = events
        self.widen = widen
        self._told: set[str] = set()

    def recall(self, events: Iterable[AnyEvent]) -> None:
        """Know the answers that earlier drives have told."""
        for event in events:
            self.listen(event)

    def listen(self, event: AnyEvent) -> None:
        """Know an answer that is told now; any thread may call it with any event."""
        if isinstance(event, DecisionAnswered):
            self._told.add(event.id)

    def fresh(self, asking: Callable[[Decision], bool]) -> tuple[Decision, ...]:
        """Return the answers that nobody has told yet.

        Args:
            asking: Says whether a decision is one that an answer sets something free by; a call
                that waits in its own thread is told there.
        """
        return untold(self._decisions.decisions(), self._run_id, self._told, asking)


def untold(
    decisions: Iterable[Decision],
    run_id: str,
    told: set[str],
    asking: Callable[[Decision], bool] = lambda _one: True,
) -> tuple[Decision, ...]:
    """Return the answered decisions of a run whose answer its events do not tell."""
    return tuple(
        one
        for one in decisions
        if one.run_id == run_id and one.answer is not None and one.id not in told and asking(one)
    )
