"""Whether a task's next step needs a person's consent: rules without any effect.

``[policy] approve`` may name tasks (``step:T440``, ``step:*``) and tags (``area:billing``). Such a
task is asked about before its next step is issued, by a decision of the kind ``approval`` that is
about no call. Consent is given to a task for a run: once approved, all further steps of all of its
candidates are issued in that run, over resumes and answers too. Another run asks again. A
rejection leaves the task as it is; whoever names it later in the same run is asked anew.
"""

from collections.abc import Sequence

from loopctl.domain import APPROVED, Decision, DecisionDraft, DecisionKind, PolicyClass, Task
from loopctl.engine.questions import is_about_landing
from loopctl.patterns import matches_task


def needed(
    task: Task, run_id: str, approve: Sequence[str], decisions: Sequence[Decision]
) -> DecisionDraft | None:
    """Return what a person has to approve before the next step; ``None`` where nothing.

    Args:
        task: Whose step it would be.
        run_id: The run that would issue it.
        approve: The patterns of ``[policy] approve``; those of calls are passed over.
        decisions: The task's, oldest first, answered or not.
    """
    pattern = pattern_for(task, approve)
    if not pattern or is_given(run_id, decisions):
        return None
    return question(task, pattern)


def pattern_for(task: Task, approve: Sequence[str]) -> str:
    """Return the first pattern that asks about the task's steps; empty where none does."""
    return next((one for one in approve if matches_task(one, task.id, task.area)), "")


def policy_class(task: Task, approve: Sequence[str]) -> PolicyClass:
    """Return what a dry run says of a task: whether a person has to approve its steps."""
    asks = bool(pattern_for(task, approve))
    return PolicyClass.NEEDS_APPROVAL if asks else PolicyClass.REVERSIBLE


def is_given(run_id: str, decisions: Sequence[Decision]) -> bool:
    """Return whether the newest answer to a question of consent in this run approves."""
    answers = [
        decision.answer
        for decision in decisions
        if is_consent(decision) and decision.run_id == run_id and decision.answer is not None
    ]
    return bool(answers) and answers[-1] == APPROVED


def is_consent(decision: Decision) -> bool:
    """Return whether a decision is about the steps of its task, and so says nothing of the work."""
    is_approval = decision.kind is DecisionKind.APPROVAL and not decision.call_key
    return is_approval and not is_about_landing(decision)


def question(task: Task, pattern: str) -> DecisionDraft:
    """Ask whether a task may be worked on in this run; the same words each time."""
    return DecisionDraft(
        kind=DecisionKind.APPROVAL,
        question=f"May {task.id} ({task.title}) be worked on in this run?",
        reason=f"[policy] approve has {pattern}",
    )
