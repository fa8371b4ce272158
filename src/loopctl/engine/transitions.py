"""How a task's status moves: one table.

Rules, in words:

* A signal is something that the harness has checked; no row is triggered by a worker's words.
* ``done`` is reached by ``landed`` alone, and left by ``reopened`` alone.
* A person who names a task (``loop T440``) claims it from any status but ``done``.
* A missing row is an error that changes nothing.

The diagram in ``docs/design/engine.md`` is made from this table.
"""

from collections.abc import Mapping
from enum import StrEnum
from types import MappingProxyType
from typing import Final

from loopctl.domain import TaskStatus as S
from loopctl.errors import InvalidTransitionError


class Signal(StrEnum):
    """What the harness has seen happen to a task."""

    CLAIMED = "claimed"
    LANDED = "landed"
    DEFERRED = "deferred"
    STALLED = "stalled"
    OVER_BUDGET = "over_budget"
    BROKEN = "broken"
    RELEASED = "released"
    ANSWERED = "answered"
    REOPENED = "reopened"


TRANSITIONS: Final[Mapping[S, Mapping[Signal, S]]] = MappingProxyType(
    {
        S.BACKLOG: {Signal.CLAIMED: S.IN_PROGRESS},
        S.TODO: {Signal.CLAIMED: S.IN_PROGRESS},
        S.IN_PROGRESS: {
            Signal.LANDED: S.DONE,
            Signal.DEFERRED: S.NEEDS_HUMAN,
            Signal.STALLED: S.STUCK,
            Signal.OVER_BUDGET: S.BLOCKED,
            Signal.BROKEN: S.BLOCKED,
            Signal.RELEASED: S.TODO,
        },
        S.NEEDS_HUMAN: {Signal.ANSWERED: S.TODO, Signal.CLAIMED: S.IN_PROGRESS},
        S.BLOCKED: {Signal.ANSWERED: S.TODO, Signal.CLAIMED: S.IN_PROGRESS},
        S.STUCK: {Signal.CLAIMED: S.IN_PROGRESS, Signal.REOPENED: S.TODO},
        S.ABANDONED: {Signal.CLAIMED: S.IN_PROGRESS},
        S.DONE: {Signal.REOPENED: S.TODO},
    }
)


def advance(state: S, signal: Signal) -> S:
    """Return the status that ``signal`` leads to from ``state``.

    Raises:
        InvalidTransitionError: The table has no such row.
    """
    try:
        return TRANSITIONS[state][signal]
    except KeyError as exc:
        raise InvalidTransitionError(state, signal) from exc
