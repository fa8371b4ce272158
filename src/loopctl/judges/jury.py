"""Asks a model for a verdict on a text, and believes it only where its quotes stand in there.

A judge is shown the goal, the task and the text; nothing that the worker says of it. A verdict
whose quotes are not found is asked for once more, with what was wrong; then there is none.
"""

import hashlib
import json
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from typing import Any, Final

from loopctl.contextports import Answered, Oracle, Question
from loopctl.domain import Criterion, Goal, Limits, Task, Usage
from loopctl.fencing import clean, fence
from loopctl.judges.evidence import shown
from loopctl.judges.output import Output, path_of
from loopctl.moneyports import Refused
from loopctl.settings import BudgetSettings
from loopctl.storeports import VerdictCache
from loopctl.verdict import Blame, Check, CheckResult, Verdict

ASKS: Final = 2
"""How often a verdict is asked for that does not count."""

QUOTE_CHARS: Final = 8
"""A shorter quote could stand anywhere; a text that is shorter itself is quoted as a whole."""

_TIER: Final = "premium"
_OUTPUT_TOKENS: Final = 4096
_MOST_OTHERS: Final = 50

QUOTES: Final[dict[str, Any]] = {
    "type": "array",
    "minItems": 1,
    "maxItems": 8,
    "items": {"type": "string", "minLength": 1},
}
"""The form of the passages that a verdict rests on."""

POINTS: Final[dict[str, Any]] = {
    "type": "array",
    "maxItems": 8,
    "items": {
        "type": "object",
        "properties": {
            "quote": {"type": "string", "minLength": 1},
            "what": {"type": "string", "minLength": 1, "maxLength": 300},
        },
        "required": ["quote", "what"],
        "additionalProperties": False,
    },
}
"""The form of what is wrong with a text: each point with the passage that it is about."""


@dataclass(frozen=True, slots=True)
class Brief:
    """What a judge is to do.

    Attributes:
        form: A JSON schema of an object with ``quotes``, and points with a ``quote`` each.
        points: The key of those points.
        fault: Why an answer of that form contradicts itself; empty where it does not.
    """

    check: Check
    system: str
    form: Mapping[str, Any]
    points: str
    fault: Callable[[Mapping[str, Any]], str]


@dataclass(frozen=True, slots=True)
class Heard:
    """What came of it.

    Attributes:
        found: The answer; ``None`` where there is none that counts.
        reason: Why there is none.
        is_unusable: Answers came, and none of them counts.
    """

    found: Mapping[str, Any] | None
    reason: str = ""
    usage: Usage = field(default_factory=Usage)
    refused: Refused | None = None
    is_unusable: bool = False


@dataclass(frozen=True, slots=True)
class Jury:
    """Asks on behalf of one run.

    Attributes:
        oracle: ``None`` where no model is there.
        goal: Shown to every judge as it was written.
        run_id: Pays, within the caps of the task.
        budget: The caps of a task that has none of its own.
        cache: What was found of a text is not asked again in the run; so nobody can hand in the
            same text until a judge likes it.
    """

    oracle: Oracle | None
    goal: Goal
    run_id: str
    budget: BudgetSettings
    cache: VerdictCache

    @property
    def is_there(self) -> bool:
        """A model can be asked."""
        return self.oracle is not None and self.oracle.is_there

    def known(self, brief: Brief, task: Task, output: Output) -> CheckResult | None:
        """Return what was found in this run of the same text under the same question."""
        found = self.cache.get(_digest(brief, self._prompt(task, output)), brief.check, self._own)
        return None if found is None else replace(found, usage=Usage())

    def remember(self, brief: Brief, task: Task, output: Output, found: CheckResult) -> None:
        """Keep what was found, unless a judge could not tell."""
        if found.verdict is not Verdict.UNKNOWN:
            digest = _digest(brief, self._prompt(task, output))
            self.cache.put(digest, brief.check, self._own, found)

    def hear(self, brief: Brief, task: Task, output: Output) -> Heard:
        """Return the verdict, its quotes looked up.

        Raises:
            CancelledError: The run was asked to stop.
        """
        if self.oracle is None:
            return Heard(None, "no model is configured that could judge it")
        prompt, usage, why = self._prompt(task, output), Usage(), ""
        for _ in range(ASKS):
            again = f"\n\nYour last verdict did not count: {why}. Judge again." if why else ""
            heard = self.oracle.ask(self._question(brief, task, f"{prompt}{again}"))
            usage += heard.usage
            if not isinstance(heard, Answered):
                return Heard(None, heard.reason, usage, heard.refused)
            found: Mapping[str, Any] = json.loads(heard.text)
            why = brief.fault(found) or _unquoted(found, brief, output.text)
            if not why:
                return Heard(found, usage=usage)
        return Heard(None, f"{ASKS} verdicts did not count: {why}", usage, is_unusable=True)

    @property
    def _own(self) -> str:
        return f"run {self.run_id}"

    def _question(self, brief: Brief, task: Task, prompt: str) -> Question:
        caps = task.budget
        return Question(
            purpose="judge",
            run_id=self.run_id,
            task=task.id,
            tier=_TIER,
            system=brief.system,
            prompt=prompt,
            answer=brief.form,
            max_output_tokens=_OUTPUT_TOKENS,
            caps=Limits(
                tokens=self.budget.task_tokens if caps.tokens is None else caps.tokens,
                usd=self.budget.task_usd if caps.usd is None else caps.usd,
            ),
        )

    def _prompt(self, task: Task, output: Output) -> str:
        return "\n".join(_parts(self.goal, task, output))


def _parts(goal: Goal, task: Task, output: Output) -> Iterator[str]:
    yield f"The goal, verbatim:\n{clean(goal.text) or '(no more than the task)'}"
    if goal.done_when:
        yield "\nIt is met when:"
        yield from (f"- {_criterion(one)}" for one in goal.done_when)
    yield f"\nThe task ({task.kind}): {task.id} - {clean(task.title)}"
    if task.prompt:
        yield clean(task.prompt)
    if task.accept:
        yield "\nIts result is accepted when:"
        yield from (f"- {clean(line)}" for line in task.accept)
    if task.clarified:
        yield "\nA person was asked about it and has answered:"
        yield from (f"- {clean(line)}" for line in task.clarified)
    if output.others:
        listed = ", ".join(shown(path) for path in output.others[:_MOST_OTHERS])
        yield f"\nThe diff changes besides ({len(output.others)}): {listed}"
    yield f"\nIts result:\n{fence(output.text, path_of(task) or 'the texts of the diff')}"


def _criterion(criterion: Criterion) -> str:
    if criterion.check is not None:
        return f"`{clean(criterion.check)}` exits 0"
    return clean(criterion.criterion or "")


def _unquoted(found: Mapping[str, Any], brief: Brief, text: str) -> str:
    """Return which quote does not stand in the text; empty where all do."""
    whole = _plain(text)
    quotes = (*found["quotes"], *(point["quote"] for point in found[brief.points]))
    for quote in map(_plain, quotes):
        if len(quote) < min(QUOTE_CHARS, len(whole)):
            return f"a quote of less than {QUOTE_CHARS} characters shows nothing ({quote!r})"
        if quote not in whole:
            return f"the result does not hold what it quotes word for word: {quote[:200]!r}"
    return ""


def _plain(text: str) -> str:
    return " ".join(text.split())


def _digest(brief: Brief, prompt: str) -> str:
    text = f"{brief.system}\0{json.dumps(brief.form, sort_keys=True)}\0{prompt}"
    return hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest()


def listed(points: list[Mapping[str, Any]]) -> str:
    """Return points as numbered lines, each with the passage that it is about."""
    rows = enumerate(points, 1)
    return "\n".join(f"{n}. {_plain(p['what'])} (at: {_cut(p['quote'])})" for n, p in rows)


def _cut(quote: str) -> str:
    plain = _plain(quote)
    return f"“{plain}”" if len(plain) <= _SHOWN else f"“{plain[:_SHOWN]}…”"


_SHOWN: Final = 160


def judged(
    check: Check, tree: str, verdict: Verdict, reason: str, heard: Heard, tail: str = ""
) -> CheckResult:
    """Return what was heard as evidence; a failure is the worker's, what is unknown nobody's."""
    blames = {Verdict.FAIL: Blame.INTRODUCED, Verdict.UNKNOWN: Blame.ENVIRONMENT}
    return CheckResult(
        check=check,
        verdict=verdict,
        blame=blames.get(verdict),
        reason=" ".join(reason.split()),
        tree=tree,
        tail=tail,
        usage=heard.usage,
        refused=heard.refused,
    )
