"""Answers recorded beside a run that another process drives: it takes them up at its next frontier."""

from collections.abc import Sequence
from dataclasses import dataclass

from loopctl.clock import SystemClock, stamp
from loopctl.domain import RunStatus
from loopctl.engine import answers as answering
from loopctl.place import Place
from loopctl.store import lease
from loopctl.store.stores import Stores


@dataclass(frozen=True, slots=True)
class Recorded:
    """Answers that a run under way takes up.

    Attributes:
        ids: Of the decisions.
        pid: The process that drives the run.
        is_late: The run came to its end meanwhile, and may not have seen them.
    """

    ids: tuple[str, ...]
    run_id: str
    pid: int
    is_late: bool


def record_beside(place: Place, given: Sequence[answering.Answer]) -> Recorded | None:
    """Record answers, all or none, for a run that another process drives now.

    A run's status leaves ``running`` before its process looks for answers for the last time, so
    an answer that is recorded while it is ``running`` is seen by that look.

    Returns:
        ``None`` where nothing was recorded: no process drives the run of all those decisions.

    Raises:
        AnswerError: One does not fit; none was recorded.
    """
    owner = lease.owner(place.local)
    if owner is None or not owner[1]:
        return None
    pid, run_id = owner
    with Stores(place.local, redact=place.redactor()) as stores:
        decisions = answering.check(given, stores.decisions.decisions())
        if any(decision.run_id != run_id for decision in decisions):
            return None
        answering.record(given, stores.decisions, stamp(SystemClock().now()))
        record = stores.runs.run(run_id)
        is_late = record is None or record.status is not RunStatus.RUNNING
    return Recorded(tuple(decision.id for decision in decisions), run_id, pid, is_late)
