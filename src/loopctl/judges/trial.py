"""Tells what a verify command does before any work: whether it can tell that work is done."""

from collections.abc import Callable, Sequence
from typing import Final

from loopctl.domain import Sha
from loopctl.ports import Gate
from loopctl.verdict import CheckResult, Verdict

_NOT_STARTED: Final = frozenset({126, 127})


class Trial:
    """Tries commands before any work, in checkouts of the gate's own: once on each commit.

    Args:
        gate: Runs them, each with its time limit.
        base: Returns the commit on which the work would begin.
    """

    def __init__(self, gate: Gate, base: Callable[[], Sha]) -> None:
        self._gate = gate
        self._base = base
        self._tried: dict[tuple[str, Sha], CheckResult] = {}

    def __call__(self, command: str, *, is_met_ok: bool) -> str:
        """Return why a command cannot verify work that is still to be done; empty where it can."""
        key = command, self._base()
        if key not in self._tried:
            self._tried[key] = self._gate.run_check(*key)
        result = self._tried[key]
        if result.verdict is Verdict.PASS:
            return "" if is_met_ok else "passes before any work; it must fail until it is done"
        if result.exit in _NOT_STARTED and not _is_to_be_made(command):
            return f"cannot start here (exit {result.exit}): {_end(result.tail)}"
        if result.verdict is Verdict.UNKNOWN and result.exit not in _NOT_STARTED:
            return f"could not be judged: {result.reason}"
        return ""


def _is_to_be_made(command: str) -> bool:
    """Return whether a command is a file of the repository, which a task may be about to make."""
    words: Sequence[str] = command.split(maxsplit=1)
    return bool(words) and "/" in words[0] and not words[0].startswith("/")


def _end(tail: str) -> str:
    lines = tail.strip().splitlines()
    return lines[-1][:200] if lines else "it is not there"
