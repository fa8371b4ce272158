"""Words and documents that several views share; light, since ``loop status`` starts with it."""

from typing import Any, Final

from loopctl.domain import Decision, DecisionKind, RunStatus

STATUS_WORDS: Final = {
    RunStatus.RUNNING: "under way",
    RunStatus.COMPLETE: "complete",
    RunStatus.NEEDS_HUMAN: "decisions needed",
    RunStatus.STALLED: "ended with tasks that are stuck or blocked",
    RunStatus.BUDGET_EXHAUSTED: "ended on the run's budget",
    RunStatus.FAILED: "failed: an internal fault",
    RunStatus.INTERRUPTED: "interrupted",
}
"""How a run stands, in words."""

_RANK: Final = {DecisionKind.PREMISE: 0, DecisionKind.KICKOFF: 1}


def counted(number: int, noun: str) -> str:
    """Return a number of things: ``1 file``, ``2 files``."""
    return f"{number} {noun}" if number == 1 else f"{number} {noun}s"


def rank(decision: Decision) -> int:
    """Return where a reader should meet a decision: false premises, the kickoff, the rest."""
    return _RANK.get(decision.kind, len(_RANK))


def decision_document(decision: Decision) -> dict[str, Any]:
    """Return a decision as it stands in every JSON document."""
    return {
        "id": decision.id,
        "task": decision.task,
        "kind": decision.kind.value,
        "question": decision.question,
        "best_guess": decision.best_guess,
        "options": list(decision.options),
    }
