"""Gets a person's consent: from what was decided before, or from somebody who is there now."""

from collections.abc import Callable, Sequence

from loopctl.clock import Clock, stamp
from loopctl.domain import (
    APPROVED,
    TIMED_OUT,
    Decision,
    DecisionDraft,
    DecisionKind,
    Limits,
    PolicyFinding,
    Task,
)
from loopctl.engine import consent
from loopctl.events import DecisionAnswered, DecisionRaised
from loopctl.ports import Emit
from loopctl.storeports import DecisionStore
from loopctl.toolports import Consent


def _reversible(_task: Task) -> PolicyFinding:
    return PolicyFinding()


class Permission:
    """Asks on behalf of one run; any thread may.

    Args:
        run_id: The run.
        approve: The patterns of ``[policy] approve``.
        timeout_s: How long somebody who is there has for an answer.
        person: ``None`` where nobody is there.
        classify: Tells the policy class of a task.
    """

    def __init__(
        self,
        run_id: str,
        approve: Sequence[str],
        timeout_s: float,
        *,
        decisions: DecisionStore,
        clock: Clock,
        emit: Emit,
        person: Consent | None = None,
        classify: Callable[[Task], PolicyFinding] = _reversible,
    ) -> None:
        self._run_id = run_id
        self._approve = tuple(approve)
        self._timeout_s = timeout_s
        self._decisions = decisions
        self._clock = clock
        self._emit = emit
        self._person = person
        self._classify = classify

    def needed(self, task: Task) -> DecisionDraft | None:
        """Return what has to be approved before a task's next step; ``None`` where nothing."""
        found = self._classify(task)
        if consent.needed(task, self._run_id, self._approve, (), found) is None:
            return None
        decisions = self._decisions.decisions(task=task.id)
        return consent.needed(task, self._run_id, self._approve, decisions, found)

    def withheld(self, task: Task) -> DecisionDraft | None:
        """Return why nothing of a task is run, its set-up included; ``None`` where it may begin.

        Somebody who is there is asked.

        Raises:
            CancelledError: The run was asked to stop.
        """
        draft = self.needed(task)
        if draft is None or draft.kind is not DecisionKind.EXTERNAL:
            return None
        decision = self.ask(task, draft)
        return None if decision is not None and decision.answer == APPROVED else draft

    def ask(self, task: Task, draft: DecisionDraft) -> Decision | None:
        """Return the decision with the answer of somebody who is there, recorded and told.

        Returns:
            ``None`` when nobody is there or answers in time; then nothing is recorded, and the
            task is put aside with the draft as any other question.

        Raises:
            CancelledError: The run was asked to stop.
        """
        if self._person is None or consent.is_final(draft):
            return None
        answer = self._person.ask(draft, self._timeout_s)
        if answer is None or (answer == TIMED_OUT and not draft.call_key):
            return None
        raised = self._decisions.raise_decision(self._run_id, task.id, draft)
        self._emit(
            DecisionRaised(
                task=task.id,
                id=raised.id,
                kind=raised.kind,
                question=raised.question,
                best_guess=raised.best_guess,
                options=raised.options,
                reason=raised.reason,
            )
        )
        now = stamp(self._clock.now())
        (decision,) = self._decisions.answer_decisions([(raised.id, answer, Limits())], now)
        self._emit(DecisionAnswered(task=task.id, id=decision.id, answer=answer))
        return decision
