"""A step in words, for the past of its candidate, and the hashes by which steps are compared."""

import hashlib
from typing import Final

from loopctl.calls import canonical
from loopctl.fencing import clean, cut, one_line
from loopctl.past import TURN_BYTES
from loopctl.steps import TurnTaken, WorkerProgress
from loopctl.worker.graph.state import Call, State

_SAID_BYTES: Final = 1200
_ARGUMENTS_BYTES: Final = 240
_RESULT_BYTES: Final = 480


def said(text: str) -> list[str]:
    """Return what the model said as lines of the story; none where it said nothing."""
    text = clean(text).strip()
    return [cut(text, _SAID_BYTES)] if text else []


def called(call: Call, result: str, *, is_error: bool) -> str:
    """Return a call and what it came to as a line of the story."""
    word = "failed" if is_error else "gave"
    came = cut(clean(result).strip(), _RESULT_BYTES)
    return f"[{one_line(_shown(call), _ARGUMENTS_BYTES)} {word}: {came}]"


def not_made(call: Call) -> str:
    """Return the line of a call that came after the step's end."""
    return f"[{one_line(_shown(call), _ARGUMENTS_BYTES)} was not made: the step had ended]"


def turn(state: State) -> TurnTaken | None:
    """Return the step in words; ``None`` where nothing was said or done."""
    text = "\n".join(state["story"])
    return TurnTaken(cut(text, TURN_BYTES)) if text else None


def progress(state: State) -> WorkerProgress:
    """Return the signals that only the worker can give."""
    made = state["made"]
    return WorkerProgress(
        made_tool_calls=bool(made),
        tool_calls_errored=state["errored"],
        response_delta_hash=_digest(state["answers"]),
        tool_calls_hash=_digest(made) if made else "",
    )


def _shown(call: Call) -> str:
    return f"{call['tool']} {call['arguments']}".rstrip()


def _digest(value: object) -> str:
    return hashlib.sha256(canonical(value)).hexdigest()
