"""What a person says of a call whose outcome is unknown, and what it does to the ledger."""

from collections.abc import Iterable

from loopctl.calls import ToolResult
from loopctl.domain import Decision, DecisionKind
from loopctl.engine.questions import AGAIN, HAPPENED
from loopctl.toolports import CallDecisions


def has_happened(answer: str) -> bool | None:
    """Return what an answer says; ``None`` where it says neither.

    An answer begins with one of the two options; more words may follow ("it happened: ticket 7").
    """
    words = " ".join(answer.casefold().split())
    if words.startswith(HAPPENED):
        return True
    return False if words.startswith(AGAIN) else None


def settle(decisions: Iterable[Decision], calls: CallDecisions) -> None:
    """Carry every answer about an unknown outcome over into the ledger, each once.

    Called before any task is worked on: so an answer that was recorded just before a crash counts
    all the same.
    """
    for decision in decisions:
        if decision.kind is not DecisionKind.OUTCOME or not decision.call_key:
            continue
        happened = has_happened(decision.answer or "")
        if happened is not None:
            result = ToolResult(decision.answer or "") if happened else None
            calls.settle(decision.id, decision.call_key, result)
