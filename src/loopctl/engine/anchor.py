"""The stop anchor: tells after a landing whether the goal is met, by looking as little as it can.

Criteria that are not known to be met are looked at first, the quickest of them at first; the first
that is not met ends the look. What was seen on a commit is not looked at again on that commit.
"""

from collections.abc import Callable
from typing import Final

from loopctl.domain import Criterion, Goal, Sha
from loopctl.ports import Gate
from loopctl.verdict import CheckResult, Verdict

Judged = tuple[Verdict, str]
"""What was found of a criterion in words, and why."""

JudgeText = Callable[[str, Sha], Judged]
"""Judges a criterion in words on a commit; ``unknown`` where it cannot tell."""

_NOBODY: Final[Judged] = (Verdict.UNKNOWN, "")


class Anchor:
    """Looks at the done-criteria of one goal. For the driver's thread alone.

    Args:
        gate: Runs the commands, each with a time limit, in checkouts of its own.
        judge_text: ``None`` where nothing here can judge a sentence.
    """

    def __init__(self, goal: Goal, gate: Gate, judge_text: JudgeText | None = None) -> None:
        self._goal = goal
        self._gate = gate
        self._judge_text = judge_text
        self._checks: dict[str, tuple[Sha, CheckResult]] = {}
        self._texts: dict[tuple[str, Sha], Judged] = {}

    @property
    def goal(self) -> Goal:
        """With its done-criteria."""
        return self._goal

    def run_check(self, command: str, commit: Sha) -> CheckResult:
        """Return how a command ends on a commit; remembered where it is known for certain.

        Raises:
            CancelledError: The run was asked to stop.
        """
        seen = self._checks.get(command)
        if seen is not None and seen[0] == commit and seen[1].verdict is not Verdict.UNKNOWN:
            return seen[1]
        result = self._gate.run_check(command, commit)
        self._checks[command] = (commit, result)
        return result

    def judge_text(self, text: str, commit: Sha) -> Judged:
        """Return what is found of a sentence on a commit; ``unknown`` where nobody can tell.

        Raises:
            CancelledError: The run was asked to stop.
        """
        if self._judge_text is None:
            return _NOBODY
        key = (text, commit)
        if key not in self._texts:
            self._texts[key] = self._judge_text(text, commit)
        return self._texts[key]

    def is_met(self, commit: Sha) -> bool:
        """Return whether every criterion is known to be met on a commit; false without criteria.

        Raises:
            CancelledError: The run was asked to stop.
        """
        criteria = sorted(self._goal.done_when, key=self._dearness)
        return bool(criteria) and all(self._holds(criterion, commit) for criterion in criteria)

    def is_open(self, criterion: Criterion, commit: Sha) -> bool:
        """Return whether a criterion is not known to be met on a commit.

        Raises:
            CancelledError: The run was asked to stop.
        """
        return not self._holds(criterion, commit)

    def _holds(self, criterion: Criterion, commit: Sha) -> bool:
        if criterion.check is not None:
            return self.run_check(criterion.check, commit).verdict is Verdict.PASS
        return self.judge_text(criterion.criterion or "", commit)[0] is Verdict.PASS

    def _dearness(self, criterion: Criterion) -> tuple[bool, bool, int]:
        """Order: commands before sentences, what was not met before what was, then by time."""
        if criterion.check is None:
            return True, False, 0
        seen = self._checks.get(criterion.check)
        if seen is None:
            return False, False, 0
        return False, seen[1].verdict is Verdict.PASS, seen[1].ms
