"""From a goal in words to done-criteria and tasks: one interview, a few tries, all or nothing."""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Final, Protocol

from loopctl.contextports import Answered, Oracle, Question
from loopctl.domain import Addition, DecisionDraft, DecisionKind, Goal, Manifest, TaskId
from loopctl.errors import KickoffError, ManifestError
from loopctl.records import Supposition
from loopctl.sources import backlog, interview
from loopctl.sources.backlog import Backlog

MAX_GOAL_BYTES: Final = 64 << 10
"""A longer text is a document, which belongs into the repository."""

ROUNDS: Final = 3
"""How often a model may mend its backlog."""

REPLACE: Final = "replace"
"""The answer that lets a goal take the place of another."""

_SHOWN_FILES: Final = 400
_SHOWN_FAULTS: Final = 12
_SHOWN_CHARS: Final = 200

Interview = Callable[[Sequence[DecisionDraft]], Sequence[str]]
"""Asks a person everything in one round; an empty answer for what was skipped."""


class WhyUnfit(Protocol):
    """Looks at what a command does before any work."""

    def __call__(self, command: str, *, is_met_ok: bool) -> str:
        """Return why a command cannot verify work that is still to be done; empty where it can.

        Args:
            command: As a model wrote it.
            is_met_ok: It may pass already.
        """
        ...


Settled = tuple[tuple[DecisionDraft, str], ...]


@dataclass(frozen=True, slots=True)
class Means:
    """What a kickoff needs of the rest of the house.

    Attributes:
        files: Of the repository, by path.
        preview: Returns the manifest with an addition; raises ``ManifestError``.
        why_unfit: Runs commands at the base; asked about the same ones again and again.
        interview: ``None`` where nobody is there.
    """

    oracle: Oracle
    run_id: str
    files: Sequence[str]
    manifest: Manifest
    preview: Callable[[Addition], Manifest]
    why_unfit: WhyUnfit
    interview: Interview | None = None


@dataclass(frozen=True, slots=True)
class Kickoff:
    """What a goal became.

    Attributes:
        addition: What is written to the manifest.
        suppositions: What was assumed, with the tasks that rest on it.
        settled: What a person has answered, as sentences.
    """

    addition: Addition
    suppositions: tuple[Supposition, ...]
    settled: tuple[str, ...]


def check_goal(text: str) -> None:
    """Refuse a goal that can be no goal, before anything is asked.

    Raises:
        KickoffError: Says why.
    """
    if not text.strip():
        raise KickoffError("the goal is empty; say in words what is to be done")
    try:
        size = len(text.encode())
    except UnicodeEncodeError as exc:
        raise KickoffError("the goal is no UTF-8 text; type it again") from exc
    if size > MAX_GOAL_BYTES:
        raise KickoffError(
            f"the goal has {size} bytes, more than {MAX_GOAL_BYTES}; put the details into a file "
            "of the repository and name it in the goal"
        )
    if "\0" in text:
        raise KickoffError("the goal holds a NUL character; leave it out")


def kick_off(text: str, means: Means) -> Kickoff:
    """Return what the goal becomes; nothing is written.

    Args:
        text: The goal, verbatim.
        means: The rest of the house.

    Raises:
        KickoffError: The model gave no backlog that can be used; or a person has stopped it.
        ManifestError: The manifest as it stands is broken.
        CancelledError: The run was asked to stop.
    """
    means.preview(Addition())
    old = means.manifest.goal.text
    if means.interview is None and _is_other(old, text):
        raise KickoffError(
            f"the manifest has another goal ({_short(old)}), and nobody is there to ask whether "
            "the new one takes its place; change the text in its [goal] first, name another file "
            "with --manifest, or give the goal with --attended"
        )
    facts = _facts(text, means)
    asked = interview.drafts(_ask(means.oracle, interview.question(facts, means.run_id)))
    answered, assumed = _interviewed(text, asked, means)
    known = _settled_lines(answered, assumed)
    made = _backlog(text, facts + known, len(assumed), means)
    return _kickoff(text, made, answered, assumed)


def _interviewed(
    text: str, asked: tuple[DecisionDraft, ...], means: Means
) -> tuple[Settled, tuple[DecisionDraft, ...]]:
    """Return what a person has answered in the one round, and what is assumed."""
    old = means.manifest.goal.text
    replacing = (_about_goal(old),) if _is_other(old, text) else ()
    if means.interview is None or not (replacing or asked):
        return (), asked
    given = [one.strip() for one in means.interview((*replacing, *asked))]
    if replacing and (not given or given.pop(0) != REPLACE):
        raise KickoffError("the manifest keeps its goal, and nothing was written")
    answers = dict(zip(asked, given, strict=False))
    answered = tuple((draft, answers[draft]) for draft in asked if answers.get(draft))
    return answered, tuple(draft for draft in asked if not answers.get(draft))


def _is_other(old: str, text: str) -> bool:
    return bool(old.strip()) and old != text


def _short(text: str) -> str:
    line = " ".join(text.split())
    return line if len(line) <= _SHOWN_CHARS else f"{line[:_SHOWN_CHARS]}…"


def _about_goal(old: str) -> DecisionDraft:
    shown = _short(old)
    return DecisionDraft(
        kind=DecisionKind.SCOPE,
        question=f"The manifest has another goal: {shown} Put the new one in its place?",
        options=(REPLACE, "stop"),
    )


def _backlog(text: str, facts: str, assumed: int, means: Means) -> Backlog:
    faults: tuple[str, ...] = ()
    for _ in range(ROUNDS):
        made = backlog.read(_ask(means.oracle, backlog.question(facts, faults, means.run_id)))
        faults = tuple(_faults(text, made, assumed, means))
        if not faults:
            return made
    listed = "\n".join(f"  {fault}" for fault in faults[:_SHOWN_FAULTS])
    raise KickoffError(
        f"the model made no backlog of the goal that can be used, {ROUNDS} times; nothing was "
        f"written. Say more in the goal, or write the tasks yourself. Wrong with the last one:\n"
        f"{listed}"
    )


def _faults(text: str, made: Backlog, assumed: int, means: Means) -> Iterator[str]:
    """Yield what is wrong; commands are run only where the tasks fit the manifest."""
    addition = Addition(Goal(text, made.done_when), made.tasks)
    try:
        means.preview(addition)
    except ManifestError as exc:
        yield from dict.fromkeys(fault.message for fault in exc.faults)
        return
    for task, numbers in zip(made.tasks, made.assumes, strict=True):
        if any(number >= assumed for number in numbers):
            yield f"task {task.id}: assumes: there are {assumed} assumptions"
    yield from _faults_of_commands(made, means)


def _faults_of_commands(made: Backlog, means: Means) -> Iterator[str]:
    for task in made.tasks:
        if not (task.verify_cmd or "").strip():
            yield f"task {task.id}: verify_cmd is empty"
        elif why := means.why_unfit(task.verify_cmd or "", is_met_ok=False):
            yield f"task {task.id}: verify_cmd `{task.verify_cmd}` {why}"
    checks = [one.check for one in made.done_when if one.check is not None]
    unfit = {check: means.why_unfit(check, is_met_ok=True) for check in checks}
    for check in filter(unfit.get, unfit):
        yield f"done_when: `{check}` {unfit[check]}"
    are_all = len(checks) == len(made.done_when) and not any(unfit.values())
    if are_all and all(means.why_unfit(check, is_met_ok=False) for check in checks):
        yield "done_when: every criterion is met before any work; at least one must fail now"


def _kickoff(
    text: str, made: Backlog, answered: Settled, assumed: tuple[DecisionDraft, ...]
) -> Kickoff:
    suppositions = tuple(
        Supposition(draft, _resting(made, index)) for index, draft in enumerate(assumed)
    )
    settled = tuple(f"{draft.question} {answer}" for draft, answer in answered)
    notes = (
        *(f"decided: {sentence}" for sentence in settled),
        *(f"assumed: {draft.question} {draft.best_guess}" for draft in assumed),
    )
    addition = Addition(Goal(text, made.done_when), made.tasks, notes)
    return Kickoff(addition, suppositions, settled)


def _resting(made: Backlog, index: int) -> tuple[TaskId, ...]:
    """Return the tasks that rest on an assumption; all of them where the model names none."""
    named = tuple(
        task.id for task, numbers in zip(made.tasks, made.assumes, strict=True) if index in numbers
    )
    return named or tuple(task.id for task in made.tasks)


def _facts(text: str, means: Means) -> str:
    files = means.files[:_SHOWN_FILES]
    more = len(means.files) - len(files)
    taken = ", ".join(task.id for task in means.manifest.tasks) or "none"
    listed = "\n".join([*files, *([f"… and {more} more"] if more else [])]) or "(none yet)"
    return f"The goal, verbatim:\n{text}\n\nFiles:\n{listed}\n\nIds that are taken: {taken}"


def _settled_lines(answered: Settled, assumed: Sequence[DecisionDraft]) -> str:
    lines = [f"- {draft.question} {answer}" for draft, answer in answered]
    decided = "\n\nDecided by the user:\n" + "\n".join(lines) if lines else ""
    lines = [f"{index}. {one.question} {one.best_guess}" for index, one in enumerate(assumed, 1)]
    return decided + ("\n\nAssumed:\n" + "\n".join(lines) if lines else "")


def _ask(oracle: Oracle, question: Question) -> str:
    heard = oracle.ask(question)
    if isinstance(heard, Answered):
        return heard.text
    raise KickoffError(f"no tasks could be made of the goal: {heard.reason}; nothing was written")
