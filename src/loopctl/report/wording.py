"""Words and documents that several views share; light, since ``loop status`` starts with it."""

from collections.abc import Collection
from typing import Any, Final

from loopctl.domain import APPROVED, REJECTED, Decision, DecisionKind, RunStatus, Usage

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


def spending(usage: Usage) -> str:
    """Return what was spent on models: ``1200 tokens, $0.0312``."""
    tokens = usage.prompt_tokens + usage.completion_tokens
    return f"{tokens} tokens, ${usage.usd:.4f}"


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


def decision_word(decision: Decision, ids: Collection[str]) -> str:
    """Return the word that names a decision and nothing else.

    Args:
        decision: Which.
        ids: Of the manifest's tasks. The first decision of ``T5`` is called like a task ``T5.1``;
            it is then written ``T5:1``, which no task can be called.
    """
    return decision.id if decision.id not in ids else colon_word(decision)


def colon_word(decision: Decision) -> str:
    """Return ``TASK:N``, the form of a decision's id that no task's id can have."""
    task, _, number = decision.id.rpartition(".")
    return f"{task}:{number}"


def takeable_guess(decision: Decision) -> str:
    """Return the best guess where it can be given as an answer in words; else nothing.

    The words of an approval or a rejection mean just that, and three dots stand for an answer
    that is still to be written.
    """
    guess = decision.best_guess.strip()
    return "" if guess in {APPROVED, REJECTED, "…"} else guess
