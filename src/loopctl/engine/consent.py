"""Whether a task's next step needs a person's consent: rules without any effect.

``[policy] approve`` may name tasks (``step:T440``, ``step:*``), tags (``area:billing``) and the
commands of a task. Such a task is asked about before its next step is issued, by a decision of the
kind ``approval`` that is about no call. A task whose effects cannot be undone is asked about before
anything of it is run, by one of the kind ``external``; what is refused whatever a person says is
put aside by one that says so.

Consent is given to a task for a run: once approved, all further steps of all of its candidates are
issued in that run, over resumes and answers too. Another run asks again. A rejection leaves the
task as it is; whoever names it later in the same run is asked anew. Consent to what cannot be
undone is good for exactly what the question has shown.
"""

from collections.abc import Sequence
from typing import Final

from loopctl.domain import (
    APPROVED,
    REJECTED,
    Decision,
    DecisionDraft,
    DecisionKind,
    PolicyClass,
    PolicyFinding,
    Task,
)
from loopctl.engine.questions import is_about_landing
from loopctl.patterns import matches_task

IRREVERSIBLE: Final = "cannot be undone: "
REFUSED: Final = "refused by the deny floor or by [policy] deny: "
"""What the reasons of decisions before a task begin with."""


def needed(
    task: Task,
    run_id: str,
    approve: Sequence[str],
    decisions: Sequence[Decision],
    found: PolicyFinding = PolicyFinding(),  # noqa: B008 - a frozen value
) -> DecisionDraft | None:
    """Return what a person has to approve before the next step; ``None`` where nothing.

    Args:
        task: Whose step it would be.
        run_id: The run that would issue it.
        approve: The patterns of ``[policy] approve``; those of calls are passed over.
        decisions: The task's, oldest first, answered or not.
        found: The task's policy class.
    """
    if found.policy is PolicyClass.IRREVERSIBLE:
        draft = irreversible(task, found)
        is_given_ = not found.is_refused and _is_answered(run_id, decisions, draft)
        return None if is_given_ else draft
    why = _why(task, approve, found)
    if not why or is_given(run_id, decisions):
        return None
    return question(task, why)


def _is_answered(run_id: str, decisions: Sequence[Decision], draft: DecisionDraft) -> bool:
    """Return whether the newest answer to exactly this question in this run approves."""
    answers = [
        one.answer
        for one in decisions
        if (one.kind, one.question, one.reason, one.options)
        == (draft.kind, draft.question, draft.reason, draft.options)
        and one.run_id == run_id
        and one.answer is not None
    ]
    return answers[-1:] == [APPROVED]


def pattern_for(task: Task, approve: Sequence[str]) -> str:
    """Return the first pattern that asks about the task's steps; empty where none does."""
    return next((one for one in approve if matches_task(one, task.id, task.area)), "")


def _why(task: Task, approve: Sequence[str], found: PolicyFinding) -> str:
    pattern = pattern_for(task, approve)
    if pattern:
        return f"[policy] approve has {pattern}"
    return found.reason if found.policy is PolicyClass.NEEDS_APPROVAL else ""


def policy_class(
    task: Task,
    approve: Sequence[str],
    found: PolicyFinding = PolicyFinding(),  # noqa: B008 - a frozen value
) -> PolicyClass:
    """Return what a dry run says of a task: whether it can be undone, and who has to approve it."""
    if found.policy is PolicyClass.IRREVERSIBLE:
        return found.policy
    asks = bool(_why(task, approve, found))
    return PolicyClass.NEEDS_APPROVAL if asks else PolicyClass.REVERSIBLE


def is_given(run_id: str, decisions: Sequence[Decision]) -> bool:
    """Return whether the newest answer to a question of consent in this run approves."""
    answers = [
        decision.answer
        for decision in decisions
        if _is_approval(decision) and decision.run_id == run_id and decision.answer is not None
    ]
    return bool(answers) and answers[-1] == APPROVED


def _is_approval(decision: Decision) -> bool:
    is_approval = decision.kind is DecisionKind.APPROVAL and not decision.call_key
    return is_approval and not is_about_landing(decision)


def is_consent(decision: Decision) -> bool:
    """Return whether a decision is about the steps of its task, and so says nothing of the work."""
    if decision.kind is DecisionKind.EXTERNAL:
        return is_final(decision) or (
            decision.options == (APPROVED, REJECTED) and decision.reason.startswith(IRREVERSIBLE)
        )
    return _is_approval(decision)


def is_final(asked: Decision | DecisionDraft) -> bool:
    """Return whether it says of a task that no answer makes ``loop`` do it."""
    return asked.kind is DecisionKind.EXTERNAL and asked.reason.startswith(REFUSED)


def irreversible(task: Task, found: PolicyFinding) -> DecisionDraft:
    """Ask about a task that cannot be undone, or say that it is never done; the same words always."""
    if found.is_refused:
        return DecisionDraft(
            kind=DecisionKind.EXTERNAL,
            question=(
                f"{task.id} ({task.title}) is not done by loop, and no approval changes that: "
                f"{found.reason}. Do it by hand outside of loop and set its status to done, or "
                "take that out of the task, then answer with a word of what you did."
            ),
            reason=f"{REFUSED}{found.reason}",
        )
    return DecisionDraft(
        kind=DecisionKind.EXTERNAL,
        question=(
            f"{task.id} ({task.title}) has effects that cannot be undone ({found.reason}). "
            "May it be done in this run?"
        ),
        options=(APPROVED, REJECTED),
        reason=f"{IRREVERSIBLE}{found.reason}",
    )


def question(task: Task, why: str) -> DecisionDraft:
    """Ask whether a task may be worked on in this run; the same words each time."""
    return DecisionDraft(
        kind=DecisionKind.APPROVAL,
        question=f"May {task.id} ({task.title}) be worked on in this run?",
        reason=why,
    )
