"""The words of what a human is asked: every question that the engine itself raises."""

import math
from collections.abc import Sequence
from dataclasses import replace
from typing import Final

from loopctl.calls import ToolCall
from loopctl.domain import APPROVED, REJECTED, Baseline, Decision, DecisionDraft, DecisionKind, Task
from loopctl.forking import Bucket
from loopctl.plan import Budget
from loopctl.steps import BudgetRefused, Deferred, ForkRaised, PremiseInvalid
from loopctl.verdict import CheckResult, GateResult, Verdict

NO_VERIFY: Final = "no_verify"
"""The reason of the decision whose answer is a verify command."""

BASELINE: Final = "baseline"
"""The reason of the decision whose answer is a baseline."""

ALIGNMENT: Final = "its judge does not let it pass"
"""The reason of the decision whose answer says what the output of a prose task should be."""

LANDING: Final = "before landing: "
"""What the reason of a decision about a result begins with; the keys of its hits follow."""

DIFFERING: Final = "candidates differ: "
"""What the reason of a decision between candidates begins with; their names follow."""

_MOST_HITS: Final = 10

HAPPENED: Final = "it happened"
AGAIN: Final = "it did not, run it again"
"""What a call of unknown outcome is answered with."""

_SHOWN: Final = 600
"""Characters of a call's arguments that a question shows."""

_BY_PATTERN: Final = "[policy] approve"
"""What the reason of a call begins with that the user's own settings ask about."""

_UNITS: Final = {"loops": "steps", "tokens": "tokens", "wall": "seconds", "usd": "US dollars"}
_OPTION: Final = {"loops": "loops", "tokens": "tokens", "wall": "wall_s", "usd": "usd"}


def how_to_verify(task: Task) -> DecisionDraft:
    """Ask for the command that shows that the task is done: there is none."""
    return DecisionDraft(
        kind=DecisionKind.VERIFY,
        question=(
            f"{task.id} has no verify_cmd and the project has no type checker, so nothing can "
            "show that its result is right. Which command must exit 0?"
        ),
        reason=NO_VERIFY,
    )


def baseline(task: Task, verify: CheckResult) -> DecisionDraft:
    """Ask whether tests that are red without the task's work may stay red.

    No guess is made: one that is taken unread would loosen the gate.
    """
    count = len(verify.findings)
    tests = "1 test that is" if count == 1 else f"{count} tests that are"
    rest = f" and {count - 1} more" if count > 1 else ""
    return DecisionDraft(
        kind=DecisionKind.VERIFY,
        question=(
            f"Nothing keeps {task.id} from landing but {tests} red without it as well: "
            f"{verify.findings[0]}{rest}. May what is red at the base stay red for this task "
            f'("{Baseline.NO_NEW_FAILURES}"), or must the command exit 0 ("{Baseline.STRICT}")?'
        ),
        options=(Baseline.NO_NEW_FAILURES, Baseline.STRICT),
        reason=BASELINE,
    )


def is_about_baseline(decision: Decision) -> bool:
    """Return whether a decision is the one that :func:`baseline` asks for."""
    return decision.kind is DecisionKind.VERIFY and decision.reason == BASELINE


def alignment(task: Task, check: CheckResult) -> DecisionDraft:
    """Ask, in one go, everything that keeps a text from serving the goal."""
    name = task.output or "its result"
    return DecisionDraft(
        kind=DecisionKind.SCOPE,
        question=(
            f"{task.id}: the judge of {name} does not find that it serves the goal "
            f"({check.reason}): {' '.join(check.tail.split())} What should it say?"
        ),
        best_guess="; ".join(check.findings),
        reason=ALIGNMENT,
    )


def clarified(decision: Decision) -> tuple[str, ...]:
    """Return what an answer says about a text, with its question; empty for all other ones."""
    is_about = decision.kind is DecisionKind.SCOPE and decision.reason == ALIGNMENT
    if not is_about or decision.answer in {None, REJECTED}:
        return ()
    return (f"{decision.question}\nThe answer: {decision.answer}",)


def landing(task: Task, check: CheckResult) -> DecisionDraft:
    """Ask whether a result may land that is green, and holds what a person must see first."""
    listed = [hit.words for hit in check.hits]
    more = f" (and {len(listed) - _MOST_HITS} more)" if len(listed) > _MOST_HITS else ""
    return DecisionDraft(
        kind=DecisionKind.APPROVAL,
        question=(
            f"{task.id} passes the gate, but its result needs your word: "
            f"{'; '.join(listed[:_MOST_HITS])}{more}. May it land?"
        ),
        reason=f"{LANDING}{' '.join(hit.key for hit in check.hits)}",
    )


def is_about_landing(decision: Decision) -> bool:
    """Return whether a decision is one that :func:`landing` asks for."""
    return decision.kind is DecisionKind.APPROVAL and decision.reason.startswith(LANDING)


def let_land(decision: Decision) -> tuple[str, ...]:
    """Return the keys of the hits that an answer lets land."""
    if not is_about_landing(decision) or decision.answer != APPROVED:
        return ()
    return tuple(decision.reason.removeprefix(LANDING).split())


def environment(task: Task, what: str) -> DecisionDraft:
    """Ask to mend what the machine lacks."""
    return DecisionDraft(
        kind=DecisionKind.ENVIRONMENT,
        question=f"{task.id} cannot go on: {what} Mend it, then answer with a word of what you did.",
        reason="environment",
    )


def environment_of(task: Task, gate: GateResult) -> DecisionDraft:
    """Ask to mend what kept the gate from judging."""
    check: CheckResult = gate.checks[-1]
    command = f" `{check.command}`" if check.command else ""
    return environment(task, f"the gate's {check.check}{command} could not judge: {check.reason}.")


def budget(task: Task, cap: str, spent: Budget) -> DecisionDraft:
    """Ask whether a task may spend more, where a candidate has used up what it may."""
    used = used_of(task, cap, spent)
    said = f"{task.id} has spent its budget of {_UNITS[cap]} ({used:.10g} used)."
    return _more(said, cap, used, used)


def refused(task: Task, cap: str, refused: BudgetRefused, used: float) -> DecisionDraft:
    """Ask whether a task may spend more, where its next model call does not fit any more.

    Args:
        task: Which.
        cap: ``tokens`` or ``usd``.
        refused: Says what the call could have cost.
        used: Of the whole task, as :func:`rounded` gives it.
    """
    said = (
        f"{task.id} has no room left in its budget of {_UNITS[cap]} ({used:.10g} used): "
        f"{refused.reason}."
    )
    return _more(said, cap, used, rounded(cap, math.ceil(refused.needed), refused.needed))


def unknown_price(task: Task, refused: BudgetRefused) -> DecisionDraft:
    """Say which setting is missing; settings are those of the run's start, so the run is over."""
    return DecisionDraft(
        kind=DecisionKind.ENVIRONMENT,
        question=(
            f"{task.id} cannot go on: {refused.reason}. Settings count from the next run on: mend "
            f"them, then begin a new one."
        ),
        reason="unknown price",
    )


def used_of(task: Task, cap: str, spent: Budget) -> float:
    """Return what a candidate has used, as far as it counts against a cap of the whole task."""
    shares = 1 if cap == "wall" else len(task.options) or 1
    if cap in {"loops", "wall"}:
        used = spent.loops_used if cap == "loops" else math.ceil(spent.wall_ms / 1000)
        return shares * used
    return shares * rounded(cap, spent.tokens_used, spent.usd_used)


def rounded(cap: str, tokens: int, usd: float) -> float:
    """Return tokens, or dollars rounded up to whole cents, whichever ``cap`` is about."""
    return math.ceil(round(100 * usd, 4)) / 100 if cap == "usd" else tokens


def _more(said: str, cap: str, used: float, needed: float) -> DecisionDraft:
    """Ask for a higher cap.

    The reason holds the cap and what was used (``loops=2 used``); the option is a new cap that
    leaves room for as much again, and for the call that did not fit.
    """
    name = _OPTION[cap]
    return DecisionDraft(
        kind=DecisionKind.BUDGET,
        question=f"{said} May it spend more?",
        options=(f"{name}={max(2 * used, 2 * needed, used + 1):.10g}",),
        reason=f"{name}={used:.10g} used",
    )


def approval(task: Task, call: ToolCall, why: str) -> DecisionDraft:
    """Ask whether a tool call may be made; what is more than the user's own pattern is said."""
    because = "" if not why or why.startswith(_BY_PATTERN) else f" It is asked since {why}."
    return DecisionDraft(
        kind=DecisionKind.APPROVAL,
        question=f"{task.id} wants to call {_shown(call)}.{because} May it?",
        reason=why,
        call_key=call.key,
    )


def outcome(task: Task, call: ToolCall, since: str) -> DecisionDraft:
    """Ask what came of a tool call that was begun and whose result nobody has."""
    return DecisionDraft(
        kind=DecisionKind.OUTCOME,
        question=(
            f"{task.id} called {_shown(call)} at {since}, and was stopped before its result was "
            "recorded: it may or may not have happened, and is not run again by itself. Please "
            f"look, then answer {HAPPENED!r} (and what came of it) or {AGAIN!r}."
        ),
        options=(HAPPENED, AGAIN),
        reason="the outcome of a call is unknown",
        call_key=call.key,
    )


def _shown(call: ToolCall) -> str:
    text = call.arguments_json
    cut = text if len(text) <= _SHOWN else f"{text[:_SHOWN]}… ({len(text)} characters)"
    return f"{call.tool} with {cut}"


def of_worker(raised: Deferred | PremiseInvalid) -> DecisionDraft:
    """Return what a human is asked because the worker has said so."""
    match raised:
        case Deferred(draft):
            return draft
        case PremiseInvalid():
            return premise(raised)


def fork(raised: ForkRaised, bucket: Bucket, why: str) -> DecisionDraft:
    """Ask which way to go at a fork that neither the gate nor the goal settles, and say why."""
    is_external = bucket is Bucket.EXTERNAL
    return DecisionDraft(
        kind=DecisionKind.EXTERNAL if is_external else DecisionKind.SCOPE,
        question=raised.question,
        best_guess=raised.best_guess,
        options=tuple(option.name for option in raised.options),
        reason=f"fork ({bucket}): {why}",
    )


def differing(
    raised: ForkRaised, bucket: Bucket, why: str, candidates: Sequence[str]
) -> DecisionDraft:
    """Ask which of the candidates lands that pass and do not do the same.

    Their names are in the order of the options.
    """
    draft = fork(raised, bucket, why)
    return replace(draft, reason=f"{DIFFERING}{' '.join(candidates)}; {draft.reason}")


def is_about_differing(decision: Decision) -> bool:
    """Return whether a decision is one that :func:`differing` asks for."""
    return decision.reason.startswith(DIFFERING)


def picked(decision: Decision, candidates: Sequence[str]) -> str:
    """Return which of the candidates an answer means; empty where it is about others."""
    if not is_about_differing(decision) or decision.answer not in decision.options:
        return ""
    asked = decision.reason.removeprefix(DIFFERING).partition(";")[0].split()
    name = asked[decision.options.index(decision.answer or "")]
    return name if name in candidates else ""


def premise(raised: PremiseInvalid) -> DecisionDraft:
    """Ask what to do about a task that rests on something false."""
    return DecisionDraft(
        kind=DecisionKind.PREMISE,
        question=f"The task rests on something that does not hold: {raised.claim}",
        reason=raised.evidence,
    )


def criterion(text: str, head: str) -> DecisionDraft:
    """Ask whether the goal is met on the commit ``head``, where nothing here can tell."""
    return DecisionDraft(
        kind=DecisionKind.VERIFY,
        question=f"Is the goal's criterion met (yes or no): {text}",
        reason=f"no model is configured that could judge it; this is about {head[:10]}",
        options=("yes", "no"),
    )


def unmet_check(command: str, result: CheckResult) -> DecisionDraft:
    """Ask how to go on, where all tasks are done and the goal is not known to be met."""
    if result.verdict is Verdict.UNKNOWN:
        return DecisionDraft(
            kind=DecisionKind.ENVIRONMENT,
            question=(
                f"Every task is done, but the goal's check `{command}` could not judge: "
                f"{result.reason}. Mend it, and run loop again."
            ),
            reason=result.tail,
        )
    return DecisionDraft(
        kind=DecisionKind.SCOPE,
        question=(
            f"Every task is done, but the goal's check `{command}` still fails. Which tasks are "
            "missing, or should the check change?"
        ),
        reason=result.tail,
    )
