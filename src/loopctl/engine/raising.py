"""Puts a question to the human: into the store, the events and the capsule."""

from dataclasses import replace

from loopctl.domain import GOAL, Decision, DecisionDraft
from loopctl.engine.work import Tools
from loopctl.events import DecisionRaised
from loopctl.records import DeferredTask
from loopctl.storeports import DecisionStore


def put_question(
    run_id: str, task: str, draft: DecisionDraft, decisions: DecisionStore, tools: Tools
) -> Decision:
    """Return the decision that a question has become; the open one where it is the same.

    Args:
        run_id: The run that asks.
        task: A task's id, or ``@goal``.
        draft: What is asked.
        decisions: Keeps it.
        tools: Of the run.
    """
    decision = decisions.raise_decision(run_id, task, draft)
    tools.emit(
        DecisionRaised(
            task=task if task != GOAL else None,
            id=decision.id,
            kind=decision.kind,
            question=decision.question,
            best_guess=decision.best_guess,
            options=decision.options,
            reason=decision.reason,
        )
    )
    entry = DeferredTask(task, decision.question, decision.best_guess)
    tools.brain.update(
        lambda capsule: replace(
            capsule,
            deferred_tasks=(
                *(one for one in capsule.deferred_tasks if one.question != entry.question),
                entry,
            ),
        )
    )
    return decision
