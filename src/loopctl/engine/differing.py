"""Finds forks that nobody has raised: two candidates pass the gate and do not do the same.

The tests of each are run on the files of the other. Where one fails, there is behaviour that the
gate does not settle: the goal is asked, by its checks, by rule and by its judge; where it is
silent, a person is. What cannot be told apart is as good as each other, and the smaller diff wins.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Final

from loopctl.crossing import Difference, Entrant
from loopctl.domain import Axis, Decision, Goal, Option, StopReason, Task
from loopctl.engine import forks, questions
from loopctl.engine.buckets import Sorted, bucket_of
from loopctl.engine.forks import Scored
from loopctl.engine.scope import settle
from loopctl.engine.work import Ended, Tools
from loopctl.fencing import clean, cut
from loopctl.forkevents import ForkClassified
from loopctl.forking import Bucket
from loopctl.steps import ForkRaised

_FOUND_BYTES: Final = 1500
_PROMPT_BYTES: Final = 2000


@dataclass(frozen=True, slots=True)
class Pick:
    """What the comparison of candidates comes to.

    Attributes:
        winner: ``None`` where none has passed, or a person is asked.
        reason: Why it wins, where that is not its size.
        asking: The end, where a person is asked: that of the one that would have won.
    """

    winner: Scored | None = None
    reason: str = ""
    asking: Ended | None = None


class Differing:
    """Picks among the candidates of one task, or of one fork in it.

    Args:
        answers: The task's answered decisions, oldest first.
    """

    def __init__(self, tools: Tools, goal: Goal, task: Task, answers: Sequence[Decision]) -> None:
        self._tools = tools
        self._goal = goal
        self._task = task
        self._answers = tuple(answers)

    def pick(
        self, scored: Sequence[Scored], options: Mapping[str, Option], question: str = ""
    ) -> Pick:
        """Return which candidate wins; that somebody is asked is told.

        Args:
            scored: Of all candidates, in their order.
            options: What each of them has tried, by its name.
            question: Of the fork; empty for the options of a task.

        Raises:
            CancelledError: The run was asked to stop.
        """
        winner = forks.pick(scored)
        if winner is None:
            return Pick()
        named = self.chosen([one.ended.candidate for one in scored])
        chosen = next((one for one in scored if one.ended.candidate == named), None)
        if chosen is not None and chosen.ended.is_passed:
            return Pick(chosen, "a person has chosen it")
        others = [one for one in scored if one is not winner and _is_whole(one)]
        found = dict(self._found(winner, others)) if _is_whole(winner) else {}
        if not found:
            return Pick(winner)
        differing = [winner, *(one for one in others if one.ended.candidate in found)]
        return self._settled(differing, list(found.values()), options, question)

    def chosen(self, candidates: Sequence[str]) -> str:
        """Return which of the candidates a person has chosen; empty where nobody has."""
        picks = (questions.picked(one, candidates) for one in reversed(self._answers))
        return next(filter(None, picks), "")

    def _found(
        self, winner: Scored, others: Sequence[Scored]
    ) -> Iterator[tuple[str, tuple[Difference, ...]]]:
        """Yield in what each of the others differs from the winner, by its name."""
        comparison = self._tools.comparison
        if comparison is None:
            return
        for other in others:
            found = comparison.differences(self._task, _entrant(winner), _entrant(other))
            if found:
                yield other.ended.candidate, found

    def _settled(
        self,
        differing: Sequence[Scored],
        found: Sequence[tuple[Difference, ...]],
        options: Mapping[str, Option],
        question: str,
    ) -> Pick:
        names = {one.ended.candidate: options[one.ended.candidate].name for one in differing}
        words = "; ".join(_words(one, names) for each in found for one in each)
        raised = _raised(differing, options, question, cut(clean(words), _FOUND_BYTES))
        sorted_ = _sorted(raised)
        winner, why = None, ""
        if sorted_.bucket is Bucket.SCOPE:
            winner, why = self._by_checks(differing)
            if winner is None:
                option, why = settle(raised, self._goal, self._task, self._tools.choose)
                ranks = (
                    one for one in differing if option and names[one.ended.candidate] == option.name
                )
                winner = next(ranks, None)
        reason = f"{sorted_.reason}; {why}" if why else sorted_.reason
        self._tell(raised, sorted_.bucket, reason, differing, winner, names)
        if winner is not None:
            return Pick(winner, why)
        draft = questions.differing(raised, sorted_.bucket, reason, [*names])
        best = replace(differing[0].ended, stop=StopReason(Axis.DEFER, draft.kind), drafts=(draft,))
        return Pick(asking=best)

    def _by_checks(self, differing: Sequence[Scored]) -> tuple[Scored | None, str]:
        """Return the one candidate that meets the goal's checks where no other does, and why."""
        comparison, left = self._tools.comparison, list(differing)
        if comparison is None:
            return None, ""
        for check in [one.check for one in self._goal.done_when if one.check]:
            ends = {
                one.ended.candidate: comparison.meets(check, _entrant(one)) for one in differing
            }
            if True in ends.values():
                left = [one for one in left if ends[one.ended.candidate] is not False]
        if len(left) == 1:
            return left[0], "of those it alone meets the goal's checks"
        return None, ""

    def _tell(
        self,
        raised: ForkRaised,
        bucket: Bucket,
        reason: str,
        differing: Sequence[Scored],
        winner: Scored | None,
        names: Mapping[str, str],
    ) -> None:
        self._tools.emit(
            ForkClassified(
                task=self._task.id,
                candidate=differing[0].ended.candidate,
                question=raised.question,
                options=tuple(option.name for option in raised.options),
                said="",
                bucket=bucket,
                reason=reason,
                chosen=names[winner.ended.candidate] if winner is not None else "",
            )
        )


def _entrant(one: Scored) -> Entrant:
    return Entrant(one.ended.candidate, one.ended.base, one.ended.tree)


def _is_whole(one: Scored) -> bool:
    """Say whether the gate has passed the whole result, so that its tests tell what it does."""
    return one.ended.is_passed and one.ended.gate is not None and one.ended.gate.is_passed


def _words(difference: Difference, names: Mapping[str, str]) -> str:
    tests_of, files_of = names[difference.tests_of], names[difference.files_of]
    return f"the tests of {tests_of} fail on {files_of} ({', '.join(difference.found)})"


def _raised(
    differing: Sequence[Scored], options: Mapping[str, Option], question: str, words: str
) -> ForkRaised:
    """Return the difference as the fork that it is, the one that would win as the guess."""
    of = [options[one.ended.candidate] for one in differing]
    about = f" ({question})" if question else ""
    return ForkRaised(
        question=(
            f"{' and '.join(one.name for one in of)} pass the gate, but they do not do the "
            f"same{about}: {words}. Which one is meant?"
        ),
        bucket=Bucket.SCOPE,
        options=tuple(replace(one, prompt=cut(clean(one.prompt), _PROMPT_BYTES)) for one in of),
        best_guess=of[0].name,
    )


def _sorted(raised: ForkRaised) -> Sorted:
    """Return the bucket: what speaks of the outside is external here as well."""
    found = bucket_of(raised)
    if found.bucket is Bucket.EXTERNAL:
        return found
    return Sorted(Bucket.SCOPE, "candidates that pass differ in what they do")
