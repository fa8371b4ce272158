"""A step that waits for a person in its middle: how it is put by, asked about, and taken up again.

Its interrupt checkpoint holds the tree and the calls that are finished, so that only the call
that waited is made next. The iteration stays the same, and with it the keys of the ledger.
"""

import json
from collections.abc import Sequence
from dataclasses import replace
from datetime import timedelta
from typing import Final

from loopctl.calls import ToolCall
from loopctl.domain import APPROVED, Decision, DecisionDraft, DecisionKind, Task
from loopctl.engine import questions
from loopctl.engine.outcomes import has_happened
from loopctl.engine.pursuit import Step
from loopctl.errors import LedgerConflictError
from loopctl.plan import Checkpoint, Interrupt
from loopctl.steps import InterruptRequired, Resume
from loopctl.toolports import CallDecisions

APPROVAL_LIFETIME: Final = timedelta(hours=1)
"""From the moment a step is taken up again: the call that waited is the first that it makes."""


def interrupt(
    place: tuple[str, int, int, int], step: Step, *, before: Checkpoint, after: Checkpoint
) -> Interrupt:
    """Return what is saved of an interrupted step.

    Args:
        place: Session, iteration, and the numbers of the step's first call and first reply.
        step: What it came to so far; it has an interrupt.
        before: The plan with what was spent, and the tree before the step.
        after: The same with the tree as the step has left it.

    Raises:
        LedgerConflictError: The key is not that of the call that waits.
    """
    session_id, iteration, first_call, first_reply = place
    raised = step.interrupt
    if raised is None:
        raise ValueError("the step is not interrupted")
    call = ToolCall(
        session_id,
        iteration,
        raised.tool_call_id,
        raised.tool_name,
        json.loads(raised.pending_tool_intent),
    )
    if call.key != raised.idempotency_key:
        raise LedgerConflictError(raised.idempotency_key, "it is another call's key")
    return Interrupt(
        kind=raised.kind,
        call=call,
        checkpoint=after if raised.blob else before,
        blob=raised.blob,
        done=step.done if raised.blob else (),
        closed=step.closed if raised.blob else None,
        first_call=first_call,
        reason=raised.reason,
        since=raised.since,
        first_reply=first_reply,
        paid=step.paid,
    )


def restarting(raised: InterruptRequired | None) -> InterruptRequired | None:
    """Return the interrupt of a step whose files are lost: the whole step is taken again."""
    return replace(raised, blob=b"") if raised is not None else None


def question(task: Task, saved: Interrupt) -> DecisionDraft:
    """Return what a person is asked about an interrupted step."""
    if saved.kind is DecisionKind.OUTCOME:
        return questions.outcome(task, saved.call, saved.since)
    return questions.approval(task, saved.call, saved.reason)


def answered(saved: Interrupt, decisions: Sequence[Decision]) -> Decision | None:
    """Return the newest answer to what an interrupt asks, among a task's answered decisions."""
    key = saved.call.key
    fitting = [one for one in decisions if one.call_key == key and one.kind is saved.kind]
    return fitting[-1] if fitting else None


def resume(saved: Interrupt, decision: Decision, calls: CallDecisions) -> Resume:
    """Return how the step goes on after its answer.

    An approval becomes a token that is good for this call alone, once. So does the word that a
    call did not happen and is to be run again: whoever says so has been asked already.
    """
    approval = None
    is_let = (
        decision.answer == APPROVED
        if saved.kind is DecisionKind.APPROVAL
        else has_happened(decision.answer or "") is False
    )
    if is_let:
        approval = calls.grant(decision.id, saved.call, APPROVAL_LIFETIME)
    return Resume(
        blob=saved.blob,
        done=saved.done,
        call_id=saved.call.ordinal,
        is_allowed=approval is not None or saved.kind is DecisionKind.OUTCOME,
        answer=decision.answer or "",
        approval=approval,
        closed=saved.closed,
        paid=saved.paid,
    )
