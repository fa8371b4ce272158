"""Sorts the forks that a step has raised: to be tried, settled from the goal, or asked about."""

from dataclasses import dataclass, replace
from typing import Final

from loopctl.domain import DecisionDraft, Option
from loopctl.engine import forks, questions
from loopctl.engine.buckets import Sorted, bucket_of
from loopctl.engine.pursuit import Step
from loopctl.engine.scope import settle
from loopctl.engine.work import Tools, Work
from loopctl.events import AnyEvent
from loopctl.fencing import clean, cut, one_line
from loopctl.forkevents import ForkClassified
from loopctl.forking import Bucket, Fork, Forks, Settled
from loopctl.plan import Plan
from loopctl.steps import ForkRaised

_QUESTION_BYTES: Final = 1000
_NAME_BYTES: Final = 200
_PROMPT_BYTES: Final = 4000
_MOST_OPTIONS: Final = 20
_MOST_SETTLED: Final = 20
"""Checkpoints, events and requests must not grow with what workers say."""

_LATER: Final = "Another fork is open; raise this one again when you meet it."
_PLANNING: Final = (
    "No plan is made by trial: plan for whichever option, and raise the fork in the step that it is "
    "about."
)


@dataclass(slots=True)
class _Found:
    """What the forks of one step come to."""

    forks: Forks
    drafts: tuple[DecisionDraft, ...] = ()
    told: tuple[str, ...] = ()


class Sorter:
    """Sorts for one candidate.

    Args:
        width: How many options of a fork are tried at most.
    """

    def __init__(self, tools: Tools, work: Work, width: int) -> None:
        self._tools = tools
        self._work = work
        self._width = width

    def sort(
        self, plan: Plan, step: Step, iteration: int, *, is_planning: bool = False
    ) -> tuple[Plan, Step]:
        """Return the plan with what its forks come to, and the step with what to ask and to tell.

        A fork to be tried stands in ``plan.forks.tried``. Whatever asks a person comes first: then
        nothing is tried.
        """
        found = _Found(plan.forks)
        for raised in step.forks:
            self._sort_one(found, raised, plan, iteration, is_planning=is_planning)
        if found.drafts and found.forks.tried is not None:
            found.forks = replace(found.forks, tried=None)
            found.told = (*found.told, _LATER)
        told = "\n".join(found.told)
        if told:
            said = f"{told}\n{step.said}".rstrip()
            step = replace(step, said=said, turn=f"{step.turn}\n{told}".strip())
        step = replace(step, drafts=(*step.drafts, *found.drafts), forks=())
        return replace(plan, forks=found.forks), step

    def _sort_one(
        self, found: _Found, raised: ForkRaised, plan: Plan, iteration: int, *, is_planning: bool
    ) -> None:
        # All that it says counts, however little of it is kept.
        sorted_, raised = bucket_of(raised), _bounded(raised)
        known = next((one for one in found.forks.settled if _is_same(one, raised)), None)
        if known is not None:
            found.told = (*found.told, settled_line(known))
            return
        option, why = self._chosen(raised, sorted_, plan)
        if option is not None:
            self._take(
                found, raised, sorted_, Settled(raised.question, option.name, option.prompt, why)
            )
        elif sorted_.bucket is not Bucket.QUALITY:
            reason = f"{sorted_.reason}; {why}" if why else sorted_.reason
            self._tell(raised, sorted_.bucket, reason)
            draft = questions.fork(raised, sorted_.bucket, reason)
            found.drafts = (*found.drafts, draft)
        elif is_planning or found.forks.tried is not None:
            self._tell(raised, sorted_.bucket, sorted_.reason)
            found.told = (*found.told, _PLANNING if is_planning else _LATER)
        else:
            self._tell(raised, sorted_.bucket, sorted_.reason)
            found.forks = replace(found.forks, tried=self._tried(raised, iteration))

    def _chosen(self, raised: ForkRaised, sorted_: Sorted, plan: Plan) -> tuple[Option | None, str]:
        """Return the option that is taken without trial or question, and why; or why none is."""
        if sorted_.bucket is Bucket.EXTERNAL:
            return None, ""
        if sorted_.bucket is Bucket.SCOPE:
            return settle(raised, self._work.goal, self._work.task, self._tools.choose)
        options = forks.entrants(raised, self._width)
        if len(raised.options) == 1:
            return options[0], "there is no other option"
        if self._work.task.is_prose:
            return options[0], "ways to write prose are not tried: its judges compare nothing"
        if self._work.trial is not None:
            mine = self._work.option
            is_mine = mine is not None and raised.question == self._work.trial.fork.question
            named = (one for one in raised.options if mine is not None and one.name == mine.name)
            option = next(named, options[0]) if is_mine else options[0]
            return option, "a fork inside a trial is not tried in its turn"
        loops = forks.left(plan.budget).loops_max
        if loops is not None and loops < len(options):
            return options[0], "the budget has no step for each option"
        return None, ""

    def _take(self, found: _Found, raised: ForkRaised, sorted_: Sorted, settled: Settled) -> None:
        reason = f"{sorted_.reason}; {settled.reason}"
        self._tell(raised, sorted_.bucket, reason, settled.option)
        kept = (*found.forks.settled, settled)[-_MOST_SETTLED:]
        found.forks = replace(found.forks, settled=kept)
        found.told = (*found.told, settled_line(settled))

    def _tried(self, raised: ForkRaised, iteration: int) -> Fork:
        options = forks.entrants(raised, self._width)
        left_out = tuple(one.name for one in raised.options if one not in options)
        return Fork(iteration, raised.question, options, left_out)

    def _tell(self, raised: ForkRaised, bucket: Bucket, reason: str, chosen: str = "") -> None:
        event: AnyEvent = ForkClassified(
            task=self._work.task.id,
            candidate=self._work.session.candidate,
            question=raised.question,
            options=tuple(option.name for option in raised.options),
            said=raised.bucket,
            bucket=bucket,
            reason=reason,
            chosen=chosen,
        )
        self._tools.emit(event)


def settled_line(settled: Settled) -> str:
    """Return in one line what a worker is told of a fork that was settled."""
    how = f" ({one_line(settled.prompt, 500)})" if settled.prompt else ""
    return (
        f"The fork {settled.question!r} is settled: {settled.option}{how}, since {settled.reason}."
    )


def _is_same(settled: Settled, raised: ForkRaised) -> bool:
    """A question that was settled stays so, as long as it offers what was chosen."""
    is_offered = any(option.name == settled.option for option in raised.options)
    return settled.question == raised.question and is_offered


def _bounded(raised: ForkRaised) -> ForkRaised:
    return ForkRaised(
        question=one_line(clean(raised.question), _QUESTION_BYTES),
        bucket=one_line(clean(raised.bucket), _NAME_BYTES),
        options=tuple(
            Option(
                one_line(clean(option.name), _NAME_BYTES), cut(clean(option.prompt), _PROMPT_BYTES)
            )
            for option in raised.options[:_MOST_OPTIONS]
        ),
        best_guess=cut(clean(raised.best_guess), _QUESTION_BYTES),
    )
