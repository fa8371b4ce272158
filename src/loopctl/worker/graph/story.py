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
_LINE_BYTES: Final = 80
"""To which a line is cut at most, where a step has many of them."""


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


def turn(state: State, limit: int = TURN_BYTES) -> TurnTaken | None:
    """Return the step in words, in ``limit`` bytes; ``None`` where nothing was said or done."""
    limit = min(limit, TURN_BYTES)
    text = "\n".join(_fitted(state["story"], limit))
    return TurnTaken(cut(text, limit)) if text else None


def _fitted(lines: list[str], limit: int) -> list[str]:
    """Return the lines, each as long as it may be for all of them to fit: no call is left out."""
    fitted, share = lines, _SAID_BYTES
    while sum(len(line.encode()) + 1 for line in fitted) > limit and share > _LINE_BYTES:
        share = share * 3 // 4
        fitted = [_shorter(line, share) for line in lines]
    return fitted


def _shorter(line: str, limit: int) -> str:
    """Return a line without its middle, or, where little is left of it, its beginning."""
    if limit > 2 * _LINE_BYTES or len(line.encode()) <= limit:
        return cut(line, limit)
    return f"{line.encode()[: limit - 3].decode('utf-8', 'ignore')}…"


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
