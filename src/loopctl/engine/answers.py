"""A human's answers: checked all together, recorded, and what they set free."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Final

from loopctl.contextports import Brain
from loopctl.domain import (
    GOAL,
    REJECTED,
    Baseline,
    Decision,
    DecisionKind,
    Limits,
    Manifest,
    Scope,
    Task,
    TaskId,
    TaskStatus,
)
from loopctl.engine.criteria import said_yes
from loopctl.engine.outcomes import has_happened
from loopctl.engine.questions import (
    AGAIN,
    HAPPENED,
    NO_VERIFY,
    clarified,
    is_about_baseline,
    is_about_differing,
    let_land,
)
from loopctl.engine.standing import newest_runs
from loopctl.errors import AnswerError
from loopctl.events import AnyEvent, DecisionAnswered, StepFinished, TaskLanded
from loopctl.ports import Emit
from loopctl.storeports import DecisionStore
from loopctl.suggestions import AssumptionRecorded


@dataclass(frozen=True, slots=True)
class Answer:
    """One answer as the user gave it.

    Attributes:
        raised: Caps of the task, for a decision about its budget.
    """

    decision_id: str
    text: str
    raised: Limits = field(default_factory=Limits)


def check(answers: Sequence[Answer], decisions: Sequence[Decision]) -> tuple[Decision, ...]:
    """Return the decisions that are answered, one for each answer.

    Raises:
        AnswerError: An answer does not fit; nothing was recorded.
    """
    known = {decision.id: decision for decision in decisions}
    newest = newest_runs(decisions)
    fitting: list[Decision] = []
    for answer in answers:
        decision = known.get(answer.decision_id)
        if decision is None:
            raise AnswerError(
                f"there is no decision {answer.decision_id}; `loop answer` lists the open ones"
            )
        if decision.answer is not None:
            raise AnswerError(
                f"{decision.id} was answered on {decision.answered_at}: {decision.answer!r}; "
                "the first answer stands"
            )
        if decision.run_id != newest[decision.task] and decision.task != GOAL:
            raise AnswerError(
                f"{decision.id} is of an earlier run, and {decision.task} was begun anew since; "
                "`loop answer` lists the questions that stand"
            )
        if decision in fitting:
            raise AnswerError(f"{decision.id} is answered twice in one go; give one answer")
        _check_text(answer, decision)
        fitting.append(decision)
    return tuple(fitting)


def _check_text(answer: Answer, decision: Decision) -> None:
    """Refuse an answer that does not say what its question asks for."""
    if not answer.text.strip():
        raise AnswerError(f"the answer to {decision.id} is empty")
    is_raised = answer.raised != Limits()
    if _is_criterion(decision) and said_yes(answer.text) is None:
        raise AnswerError(
            f"{decision.id} wants a yes or a no: loop answer {decision.id} yes; more words may "
            "follow"
        )
    if decision.kind is DecisionKind.BUDGET and not is_raised and answer.text != REJECTED:
        raise AnswerError(
            f"{decision.id} asks for a budget: loop answer {decision.id} --budget loops=50 "
            "(or tokens, usd, wall_s), or --reject"
        )
    is_choice = is_about_baseline(decision) or is_about_differing(decision)
    if is_choice and answer.text not in {*decision.options, REJECTED}:
        raise AnswerError(
            f"{decision.id} wants one of its options: loop answer {decision.id} "
            f"{' or '.join(decision.options)}, or --reject"
        )
    if decision.kind is DecisionKind.OUTCOME and answer.text != REJECTED:
        _check_outcome(decision, answer.text)


def _is_criterion(decision: Decision) -> bool:
    return decision.task == GOAL and decision.kind is DecisionKind.VERIFY


def _check_outcome(decision: Decision, text: str) -> None:
    """Refuse an answer that would have to be guessed at: it decides whether a call is made again."""
    if has_happened(text) is None:
        raise AnswerError(
            f"{decision.id} asks whether a call happened: answer {HAPPENED!r} (more words may "
            f"follow), {AGAIN!r}, or {REJECTED!r}"
        )


def record(answers: Sequence[Answer], store: DecisionStore, now: str) -> tuple[Decision, ...]:
    """Return the decisions with their answers, written to the store: all of them, or none."""
    given = ((answer.decision_id, answer.text, answer.raised) for answer in answers)
    return store.answer_decisions(given, now)


def announce(recorded: Sequence[Decision], emit: Emit, brain: Brain) -> None:
    """Put recorded answers into the events, and into the capsule that the tasks go on from."""
    for decision in recorded:
        task = None if decision.task == GOAL else decision.task
        emit(DecisionAnswered(task=task, id=decision.id, answer=decision.answer or ""))
    words = {decision.question: decision.answer for decision in recorded}
    settled = {one.question: one for one in recorded if one.kind is DecisionKind.KICKOFF}
    over = {assumption(one.question, one.best_guess) for one in settled.values()}
    brain.update(
        lambda capsule: replace(
            capsule,
            assumptions=tuple(one for one in capsule.assumptions if one not in over),
            open_questions=tuple(one for one in capsule.open_questions if one not in settled),
            key_decisions=(
                *capsule.key_decisions,
                *(f"{one.question} {one.answer}" for one in settled.values()),
            ),
            deferred_tasks=tuple(
                replace(entry, answer=words.get(entry.question, entry.answer))
                for entry in capsule.deferred_tasks
            ),
        )
    )


def assumption(question: str, guess: str) -> str:
    """Return what was assumed, as a sentence of the capsule."""
    return f"{question} {guess}"


def freed(recorded: Sequence[Decision], decisions: Sequence[Decision]) -> tuple[TaskId, ...]:
    """Return the tasks that can go on: answered, not rejected, with no other question open."""
    newest = newest_runs(decisions)
    waiting = {
        decision.task
        for decision in decisions
        if decision.answer is None and decision.run_id == newest[decision.task]
    }
    tasks = dict.fromkeys(
        TaskId(decision.task)
        for decision in recorded
        if decision.task != GOAL and decision.task not in waiting and decision.is_going_on
    )
    return tuple(tasks)


_ASSUMABLE: Final = frozenset(
    {DecisionKind.KICKOFF, DecisionKind.EXTERNAL, DecisionKind.SCOPE, DecisionKind.PREMISE}
)


def is_contradiction(decision: Decision) -> bool:
    """Return whether an answer may take the ground from work: it is not what was guessed."""
    if decision.answer is None or decision.kind not in _ASSUMABLE:
        return False
    is_yes = said_yes(decision.answer) is True
    return not (is_yes or _is_same(decision.answer, decision.best_guess))


def _is_same(one: str, other: str) -> bool:
    return " ".join(one.split()).casefold() == " ".join(other.split()).casefold()


def overturned(
    answered: Sequence[Decision], events: Iterable[AnyEvent], manifest: Manifest
) -> dict[TaskId, Decision]:
    """Return the tasks that recorded what an answer contradicts, and what was built on them.

    A task that has come to the end of a step since the events told the answer has followed it.

    Args:
        answered: With their answers.
        events: Of the run.
        manifest: As it is now.

    Returns:
        Each task with the newest decision that takes its ground away, in the manifest's order.
    """
    contradicted = {one.id: one for one in answered if is_contradiction(one)}
    resting: dict[TaskId, Decision] = {}
    told: dict[str, int] = {}
    worked: dict[str, int] = {}
    for number, event in enumerate(events):
        if isinstance(event, DecisionAnswered):
            told[event.id] = number
        elif isinstance(event, StepFinished | TaskLanded) and event.task:
            worked[event.task] = number
        elif isinstance(event, AssumptionRecorded) and _rests(event, contradicted):
            resting[TaskId(event.task or "")] = contradicted[event.decision]

    def has_followed(task: TaskId, decision: Decision) -> bool:
        return decision.id in told and worked.get(task, -1) > told[decision.id]

    dependents = _dependents(manifest)
    found = dict(resting)
    queue = list(found)
    while queue:
        task = queue.pop()
        for dependent in dependents.get(task, ()):
            if dependent not in found:
                found[dependent] = found[task]
                queue.append(dependent)
    return {
        task.id: found[task.id]
        for task in manifest.tasks
        if task.id in found and not has_followed(task.id, found[task.id])
    }


def _rests(event: AssumptionRecorded, contradicted: Mapping[str, Decision]) -> bool:
    """Return whether a task rests on what is contradicted; the one that has asked goes on."""
    decision = contradicted.get(event.decision)
    if decision is None or event.task in {None, decision.task}:
        return False
    return not _is_same(event.text, decision.answer or "")


def reach(manifest: Manifest, tasks: Sequence[TaskId]) -> Scope:
    """Return the scope of exactly those tasks and what waited for them, over any distance."""
    waiting: Mapping[TaskId, list[TaskId]] = _dependents(manifest)
    reached = dict.fromkeys(tasks)
    queue = list(tasks)
    todo = {task.id for task in manifest.tasks if task.status is TaskStatus.TODO}
    while queue:
        for task in waiting.get(queue.pop(), ()):
            if task in todo and task not in reached:
                reached[task] = None
                queue.append(task)
    return Scope(ids=tuple(reached))


def _dependents(manifest: Manifest) -> dict[TaskId, list[TaskId]]:
    dependents: dict[TaskId, list[TaskId]] = {}
    for task in manifest.tasks:
        for needed in task.deps:
            dependents.setdefault(needed, []).append(task.id)
    return dependents


def as_answered(task: Task, answers: Sequence[Decision]) -> Task:
    """Return the task with what its answers change: caps, a verify command, what may land."""
    for decision in answers:
        raised = decision.raised
        caps = task.budget
        task = replace(
            task,
            budget=Limits(
                tokens=caps.tokens if raised.tokens is None else raised.tokens,
                usd=caps.usd if raised.usd is None else raised.usd,
                loops=caps.loops if raised.loops is None else raised.loops,
                wall_s=caps.wall_s if raised.wall_s is None else raised.wall_s,
            ),
        )
        if decision.kind is DecisionKind.VERIFY and decision.reason == NO_VERIFY:
            task = replace(task, verify_cmd=decision.answer)
        task = replace(
            task,
            approved=(*task.approved, *let_land(decision)),
            clarified=(*task.clarified, *clarified(decision)),
        )
        if is_about_baseline(decision) and decision.answer != REJECTED:
            task = replace(task, baseline=Baseline(decision.answer or ""))
    return task
