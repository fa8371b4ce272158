"""Why a step comes to its end, and the limits on how long it goes on."""

from enum import StrEnum
from typing import Any, Final

from loopctl.worker.graph.state import Surroundings

ROUNDS: Final = 12
"""Replies of one step; it ends after the calls of the last one."""

WRONG_TRIES: Final = 3
"""Replies in a row in which nothing is right; the step ends after them."""


class End(StrEnum):
    """Why a step is at its end."""

    CONTROL = "control"
    """The model has ended it: by a plan, a todo that is done, a question."""
    ANSWERED = "answered"
    """It went on talking without a call."""
    NONSENSE = "nonsense"
    ROUNDS = "rounds"
    SPENT = "spent"
    WITHHELD = "withheld"
    TOO_LONG = "too_long"
    NO_MONEY = "no_money"
    NO_MODEL = "no_model"


_TOLD: Final = {
    End.NONSENSE: f"[the step ended after {WRONG_TRIES} replies in a row that could not be used]",
    End.ROUNDS: f"[the step ended after {ROUNDS} replies]",
    End.SPENT: "[the step ended: the task's budget is used up]",
}


def ended_by_limit(replies: int, wrong: int, around: Surroundings) -> dict[str, Any]:
    """Return the update of the state that ends the step, where the model is not to be asked again.

    It bounds this one step; what that means for the task is the engine's to decide.

    Args:
        replies: Of the step so far.
        wrong: Of them, how many of the newest in a row could not be used.
        around: The step.
    """
    if wrong >= WRONG_TRIES:
        end = End.NONSENSE
    elif replies >= ROUNDS:
        end = End.ROUNDS
    elif around.is_spent():
        end = End.SPENT
    else:
        return {}
    return {"end": end.value, "story": [_TOLD[end]]}
