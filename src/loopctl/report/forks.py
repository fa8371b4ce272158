"""Folds what is told of forks and candidates into the summary of their task; pure."""

from dataclasses import replace
from typing import assert_never

from loopctl.events import CandidateEnded, ForkResolved
from loopctl.forkevents import ForkClassified
from loopctl.forking import Bucket
from loopctl.report.summary import CandidateSummary, ForkSummary, TaskSummary


def fork_event(
    task: TaskSummary, event: ForkClassified | CandidateEnded | ForkResolved
) -> TaskSummary:
    """Return the task after one more of these events."""
    match event:
        case ForkClassified():
            fork = ForkSummary(event.question, event.bucket, event.reason, event.chosen)
            return replace(task, forks=_latest(task.forks, fork))
        case CandidateEnded():
            ended = CandidateSummary(
                event.name, event.verdict, event.ref, event.reason, event.changed_lines
            )
            others = tuple(known for known in task.candidates if known.name != event.name)
            return replace(task, candidates=(*others, ended))
        case ForkResolved():
            if not event.question:
                return replace(task, winner=event.winner, fork_reason=event.reason)
            fork = ForkSummary(event.question, Bucket.QUALITY, event.reason, event.winner or "")
            return replace(task, forks=_latest(task.forks, fork))
        case _:
            assert_never(event)


def _latest(forks: tuple[ForkSummary, ...], fork: ForkSummary) -> tuple[ForkSummary, ...]:
    """Return the forks with one in the place of what was known of it."""
    return (*(one for one in forks if one.question != fork.question), fork)
