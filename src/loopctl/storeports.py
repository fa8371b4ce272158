"""The protocols of what must survive the process: runs, sessions, decisions, verdicts.

They belong to ``ports.py``, and stand apart because only the engine and the gate need them.
Every write is one transaction in ``.local/loop.db``.
"""

from collections.abc import Iterable
from typing import Protocol

from loopctl.domain import Decision, DecisionDraft, Limits, RunStatus, Sha, TaskId
from loopctl.plan import Checkpoint, Interrupt
from loopctl.records import RunRecord, SessionRecord
from loopctl.verdict import CheckResult


class RunStore(Protocol):
    """Runs."""

    def create_run(self, record: RunRecord) -> None:
        """Remember a new run."""
        ...

    def set_run_status(self, run_id: str, status: RunStatus, ended: str | None) -> None:
        """Remember how a run stands."""
        ...

    def run(self, run_id: str) -> RunRecord | None:
        """Return one run."""
        ...

    def runs(self) -> tuple[RunRecord, ...]:
        """Return all runs, the newest first."""
        ...


class SessionStore(Protocol):
    """Sessions and their checkpoints."""

    def open_session(self, run_id: str, task: TaskId, candidate: str, base: Sha) -> SessionRecord:
        """Return the session of that candidate, with its last checkpoint and what interrupts it."""
        ...

    def last_run(self, task: TaskId) -> str | None:
        """Return the run that was the last to open a session of a task."""
        ...

    def save_checkpoint(self, session_id: str, iteration: int, checkpoint: Checkpoint) -> None:
        """Save one iteration, and drop the step's interrupts; the same again is a no-op.

        Raises:
            CheckpointConflictError: The iteration exists with other contents.
        """
        ...

    def save_interrupt(self, session_id: str, iteration: int, interrupt: Interrupt) -> None:
        """Save that a step waits for a person; the newest one of the step counts.

        Raises:
            CheckpointConflictError: The step has come to its end already.
        """
        ...


class DecisionStore(Protocol):
    """What humans were asked, and what they said."""

    def raise_decision(self, run_id: str, task: str, draft: DecisionDraft) -> Decision:
        """Return the new decision, numbered within its task; the open one if it is the same."""
        ...

    def answer_decisions(
        self, answers: Iterable[tuple[str, str, Limits]], answered_at: str
    ) -> tuple[Decision, ...]:
        """Return the decisions with their answers, recorded all together.

        Args:
            answers: The decision's id, the words, and the caps that they raise.
            answered_at: ISO 8601, UTC.

        Raises:
            AnswerError: There is no such decision, or it was answered before (and how); none of
                the answers was recorded.
        """
        ...

    def decisions(self, *, task: str | None = None) -> tuple[Decision, ...]:
        """Return the decisions of all runs in the order in which they were raised."""
        ...


class VerdictCache(Protocol):
    """Remembers verdicts on trees, so that a base is judged once."""

    def get(self, tree: str, check: str, command: str) -> CheckResult | None:
        """Return what was found before."""
        ...

    def put(self, tree: str, check: str, command: str, result: CheckResult) -> None:
        """Remember a verdict; one whose blame is ``environment`` or ``flaky`` is not kept."""
        ...


class ReplyStore(Protocol):
    """What a model has answered within a step that is not at its end yet.

    A step that is taken again gives the same replies, so that it makes the same calls under the
    same ordinals and pays for none of them twice. They go when the step's checkpoint is saved.
    """

    def keep(self, session_id: str, iteration: int, number: int, reply: str) -> None:
        """Keep a reply, JSON, before any of its calls is made; the same again is a no-op.

        Args:
            session_id: Of the candidate.
            iteration: Of the step.
            number: Over the whole iteration: ``StepRequest.first_reply`` for the first of a step,
                then one by one.
            reply: JSON.

        Raises:
            CheckpointConflictError: Another reply is kept under that number, or the step has come
                to its end already.
        """
        ...

    def replies(self, session_id: str, iteration: int, first: int = 0) -> tuple[str, ...]:
        """Return what was kept from the number ``first`` on, in order, up to the first gap."""
        ...
