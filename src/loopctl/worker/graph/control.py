"""The control tools: how a model plans, closes a todo, asks, and says what it took for granted.

Nothing of this leaves the worker but as a step's event; a model's prose decides nothing.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, Final

from loopctl.calls import ToolSpec
from loopctl.domain import Assumption, DecisionDraft, DecisionKind, Option, Proposal
from loopctl.fencing import clean
from loopctl.steps import (
    Assumed,
    Deferred,
    ForkRaised,
    PremiseInvalid,
    Proposed,
    StepEvent,
    TodoDone,
)

PLAN: Final = "plan"
"""The tool whose call is the plan; not offered where no plan is made."""

MAX_TODOS: Final = 50
"""Open todos of one plan: a longer list would be refused as no plan."""

MAX_CHARS: Final = 8000
"""Of one text of a control call: it goes into checkpoints, reports, and to people."""

TODO_CHARS: Final = 2000
"""Of a todo, which every later request repeats."""

_Arguments = Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class Controlled:
    """What a control call came to.

    Attributes:
        text: What the model is told.
        event: For the engine, at once.
        ends: The step ends with it.
        is_error: It was not taken; the text says why.
    """

    text: str
    event: StepEvent | None = None
    ends: bool = False
    is_error: bool = False


def _words(description: str, *, is_needed: bool = True, max_chars: int = MAX_CHARS) -> _Arguments:
    # What is needed must say something: at least one character that is no white space.
    return {"type": "string", "maxLength": max_chars, "description": description} | (
        {"pattern": r"\S"} if is_needed else {}
    )


def _object(optional: tuple[str, ...] = (), **properties: _Arguments) -> _Arguments:
    return {
        "type": "object",
        "properties": properties,
        "required": [name for name in properties if name not in optional],
        "additionalProperties": False,
    }


_GUESS: Final = _words("What you would do if nobody answered.", is_needed=False)

SPECS: Final = (
    ToolSpec(
        PLAN,
        "State the todos that are still ahead, in order: the plan, or what it should become. Name "
        "every open todo that stays, word for word; those that you leave out are abandoned. A todo "
        "is one result that can be reached and looked at on its own.",
        _object(
            todos={
                "type": "array",
                "items": _words("One todo, one line.", max_chars=TODO_CHARS),
                "minItems": 1,
                "maxItems": MAX_TODOS,
                "uniqueItems": True,
            }
        ),
    ),
    ToolSpec(
        "todo_done",
        "Close the active todo: its result is in the files. Ends the step. When no todo is left "
        "the work is checked by the gate, and failures come back to you.",
        _object(summary=_words("What was done and what later todos must know, a few lines.")),
    ),
    ToolSpec(
        "defer",
        "Put the task aside and ask a person, where only a person can decide or provide "
        "something: credentials, money, accounts, law, an irreversible action, a goal that does "
        "not say. Ends the step. This is the only way to ask.",
        _object(
            ("best_guess",),
            reason=_words("Why you cannot settle it yourself."),
            decision_needed=_words("The question, complete in itself, one that can be answered."),
            best_guess=_GUESS,
        ),
    ),
    ToolSpec(
        "fork",
        "Say that there are several ways to go on and that the choice matters. Ends the step.",
        _object(
            ("best_guess",),
            question=_words("What is to be chosen."),
            bucket={
                "type": "string",
                "enum": ["quality", "scope", "external"],
                "description": "quality: try and compare them; scope: the goal must say; "
                "external: a person must.",
            },
            options={
                "type": "array",
                "minItems": 1,
                "items": _object(
                    ("prompt",),
                    name=_words("A short name, used once."),
                    prompt=_words("How it would be done.", is_needed=False),
                ),
            },
            best_guess=_GUESS,
        ),
    ),
    ToolSpec(
        "premise_invalid",
        "Say that the task rests on something that is not true, so that it cannot be done as it "
        "stands. Ends the step.",
        _object(
            claim=_words("What the task takes for true and is not."),
            evidence=_words("What shows that: files, lines, output."),
        ),
    ),
    ToolSpec(
        "assume",
        "Put on record something that you take for granted without proof, and go on working.",
        _object(text=_words("The assumption, complete in itself.")),
    ),
    ToolSpec(
        "propose",
        "Propose a further task that the goal needs and the backlog lacks, and go on working. It "
        "is taken only where it serves a done-criterion of the goal that is still open.",
        _object(
            ("deps",),
            title=_words("What the task is, one line."),
            prompt=_words("What is to be done, complete in itself."),
            verify_cmd=_words("A command that fails now and exits 0 once the task is done."),
            serves=_words("The done-criterion, word for word, or its number."),
            deps={
                "type": "array",
                "items": _words("The id of a task that must be done before."),
                "maxItems": 20,
            },
        ),
    ),
)
"""What a model is told of them, always in the same order."""

NAMES: Final = frozenset(spec.name for spec in SPECS)


def perform(tool: str, arguments: _Arguments, *, is_planning: bool) -> Controlled:
    """Return what a control call came to; its arguments fit its schema."""
    if tool == PLAN:
        # The plan is told at the step's end, so that an interrupt cannot lose it.
        return Controlled("The plan is noted.", ends=is_planning)
    return _PERFORMERS[tool](arguments)


def _todo_done(given: _Arguments) -> Controlled:
    return Controlled("The todo is closed.", TodoDone(clean(given["summary"])), ends=True)


def _defer(given: _Arguments) -> Controlled:
    draft = DecisionDraft(
        # A worker defers what it cannot settle itself; the strictest kind, until the engine
        # knows better.
        kind=DecisionKind.EXTERNAL,
        question=clean(given["decision_needed"]),
        best_guess=clean(given.get("best_guess", "")),
        reason=clean(given["reason"]),
    )
    return Controlled("A person is asked.", Deferred(draft), ends=True)


def _fork(given: _Arguments) -> Controlled:
    options = tuple(
        Option(clean(option["name"]), clean(option.get("prompt", "")))
        for option in given["options"]
    )
    if len({option.name for option in options}) < len(options):
        return Controlled("two options have the same name", is_error=True)
    raised = ForkRaised(
        clean(given["question"]), given["bucket"], options, clean(given.get("best_guess", ""))
    )
    return Controlled("The fork is raised.", raised, ends=True)


def _premise_invalid(given: _Arguments) -> Controlled:
    raised = PremiseInvalid(clean(given["claim"]), clean(given["evidence"]))
    return Controlled("The premise is put in question.", raised, ends=True)


def _assume(given: _Arguments) -> Controlled:
    return Controlled("The assumption is on record.", Assumed(Assumption(clean(given["text"]))))


def _propose(given: _Arguments) -> Controlled:
    proposal = Proposal(
        title=clean(given["title"]),
        prompt=clean(given["prompt"]),
        verify_cmd=clean(given["verify_cmd"]),
        serves=clean(given["serves"]),
        deps=tuple(clean(dep) for dep in given.get("deps", ())),
    )
    return Controlled("The proposal is on record.", Proposed(proposal))


_PERFORMERS: Final[Mapping[str, Callable[[_Arguments], Controlled]]] = {
    "todo_done": _todo_done,
    "defer": _defer,
    "fork": _fork,
    "premise_invalid": _premise_invalid,
    "assume": _assume,
    "propose": _propose,
}
