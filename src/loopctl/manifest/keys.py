"""Every key that a manifest may have, each declared once.

The validator reads by this table, and ``docs/reference/manifest.md`` is made from it.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any, Final

from loopctl.domain import Baseline, Criterion, Goal, Kind, Mode, Option, TaskStatus
from loopctl.manifest.readers import (
    Flaw,
    Reader,
    UnfitError,
    amount,
    inner_path,
    list_of,
    name,
    one_of,
    optional_path,
    optional_text,
    read_table,
    task_id,
    text,
    whole,
    word_of,
)
from loopctl.tomlsource.words import show

TIERS: Final = ("cheap", "standard", "premium")
BUILT_IN_WORKERS: Final = frozenset(
    {"graph", "command", "claude", "codex", "gemini", "opencode", "aider", "mini"}
)
SCHEMA: Final = 1


@dataclass(frozen=True, slots=True)
class Key:
    """One key of one table.

    Attributes:
        wants: What its value is, in words.
        read: Returns the value as the domain has it.
        meaning: What it does, for the reference.
        default: What stands where it is missing, in words.
    """

    name: str
    wants: str
    read: Reader
    meaning: str
    default: str = ""


def _readers(keys: Iterable[Key]) -> Mapping[str, Reader]:
    return {key.name: key.read for key in keys}


def _words(words: Iterable[str]) -> str:
    return "one of " + ", ".join(f"`{word}`" for word in words)


BUDGET_KEYS: Final = (
    Key("tokens", "whole number", whole, "Tokens, prompts and completions together."),
    Key("usd", "number", amount, "US dollars."),
    Key("loops", "whole number", whole, "Steps; a planning call is none."),
    Key("wall_s", "number", amount, "Seconds of wall time."),
)
_BUDGET: Final = _readers(BUDGET_KEYS)

OPTION_KEYS: Final = (
    Key("name", "text in one line", name, "Names the candidate; unique in the task.", "required"),
    Key("prompt", "text", text, "Added to the task's prompt for this candidate."),
    Key("command", "text", optional_text, "Instead of the task's command, for this candidate."),
)
_OPTION: Final = _readers(OPTION_KEYS)

CRITERION_KEYS: Final = (
    Key("check", "command", text, "A command that must exit 0 on the integration branch."),
    Key("criterion", "text", text, "A sentence that is judged against the goal."),
)
_CRITERION: Final = _readers(CRITERION_KEYS)


def _budget(value: Any) -> dict[str, Any]:
    """Read caps; still a table, because a task's caps are laid over those of ``[defaults]``."""
    return read_table(value, _BUDGET)


def _option(value: Any) -> Option:
    values = read_table(value, _OPTION)
    if "name" not in values:
        raise UnfitError(Flaw((), "", "has no name"))
    return Option(**values)


def _options(value: Any) -> tuple[Option, ...]:
    flaws: list[Flaw] = []
    options: tuple[Option, ...] = ()
    try:
        options = list_of(_option, "options")(value)
    except UnfitError as exc:
        flaws.extend(exc.args)
    seen: set[str] = set()
    for index, option in enumerate(value if isinstance(value, list) else ()):
        option_name = option.get("name") if isinstance(option, dict) else None
        if isinstance(option_name, str):
            if option_name in seen:
                flaws.append(Flaw((index, "name"), show(option_name), "names an earlier one too"))
            seen.add(option_name)
    if flaws:
        raise UnfitError(*flaws)
    return options


def _criterion(value: Any) -> Criterion:
    values = read_table(value, _CRITERION)
    if len(values) != 1:
        why = "has both check and criterion" if values else "has neither check nor criterion"
        raise UnfitError(Flaw((), "", f"{why}; give exactly one"))
    ((key, words),) = values.items()
    if not words.strip():
        raise UnfitError(Flaw((key,), show(words), "is empty"))
    return Criterion(**values)


TASK_KEYS: Final = (
    Key(
        "id",
        "text",
        task_id,
        "Unique. Letters, digits, `.`, `_`, `-`; begins with a letter or digit; no `..`, no `.` "
        "or `.lock` at the end, which git refs cannot have. Not in `[defaults]`.",
        "required",
    ),
    Key("title", "text in one line", name, "What the task is, for people.", "required"),
    Key(
        "status",
        _words(TaskStatus),
        one_of(TaskStatus),
        "The only key that `loop` writes back.",
        "`todo`",
    ),
    Key("kind", _words(Kind), one_of(Kind), "What the task yields.", "`code`"),
    Key("area", "list of texts", list_of(name, "texts"), "Tags; `--area` chooses by them."),
    Key(
        "deps",
        "list of ids",
        list_of(task_id, "ids"),
        "Tasks that must be `done` before this one may run.",
    ),
    Key(
        "priority",
        "whole number",
        whole,
        "A higher one runs first among those that can run; ties go by the order of the file.",
        "0",
    ),
    Key("model", _words(TIERS), word_of({tier: tier for tier in TIERS}), "The tier of the model."),
    Key(
        "worker",
        "text in one line",
        name,
        "Who does it: " + ", ".join(f"`{worker}`" for worker in sorted(BUILT_IN_WORKERS)) + ".",
        "`command` where the task has a command, else `loop.worker`",
    ),
    Key("mode", _words(Mode), one_of(Mode), "With a plan, or as one todo.", "`loop.mode`"),
    Key(
        "verify_cmd",
        "command",
        optional_text,
        "Must exit 0 on the result. Empty: none, also where `[defaults]` has one.",
    ),
    Key("prompt", "text", text, "What is to be done, for the worker."),
    Key(
        "accept",
        "list of texts",
        list_of(text, "texts"),
        "Acceptance lines, shown to the worker and to judges.",
    ),
    Key(
        "may_edit",
        "list of globs",
        list_of(inner_path, "globs"),
        "Lifts the protection of these paths; relative, without `..`.",
    ),
    Key(
        "output",
        "path",
        optional_path,
        "Tasks that are not code: the file that the result is, which a judge reads; relative, without "
        "`..`. Without it, the texts that the diff brings.",
    ),
    Key(
        "command",
        "command",
        optional_text,
        "What the worker `command` runs, by `sh -c` in the sandbox. Empty: none.",
    ),
    Key("options", "list of tables", _options, "Competing candidates; the gate picks one."),
    Key(
        "baseline",
        _words(Baseline),
        one_of(Baseline),
        "Whether what is red at the base may stay red.",
        "`gate.baseline`",
    ),
    Key(
        "budget",
        "table",
        _budget,
        "Caps; 0 means that nothing may be spent. Each is laid over that of `[defaults]`.",
        "`[budget]` of the settings",
    ),
)
TASK: Final = _readers(TASK_KEYS)


def _no_id(value: Any) -> str:
    raise UnfitError(Flaw((), show(value), "cannot stand here; each task has its own id"))


DEFAULTS: Final = {**TASK, "id": _no_id}

GOAL_KEYS: Final = (
    Key("text", "text", text, "The objective; kept verbatim wherever it is copied."),
    Key("done_when", "list of tables", list_of(_criterion, "tables"), "When the goal is met."),
)
GOAL: Final = _readers(GOAL_KEYS)


def _schema(value: Any) -> int:
    number = whole(value)
    if number != SCHEMA:
        raise UnfitError(Flaw((), show(value), f"is not known; this loop reads schema {SCHEMA}"))
    return number


def _goal(value: Any) -> Goal:
    return Goal(**read_table(value, GOAL))


def _defaults(value: Any) -> dict[str, Any]:
    return read_table(value, DEFAULTS)


def _tables(value: Any) -> list[dict[str, Any]]:
    if isinstance(value, dict):
        raise UnfitError(Flaw((), "", "is one table; head each task with [[task]]"))
    if not isinstance(value, list) or not all(isinstance(table, dict) for table in value):
        raise UnfitError(Flaw((), show(value), "is no list of tables; head each with [[task]]"))
    return value


TOP_KEYS: Final = (
    Key("schema", "the number 1", _schema, "The version of this format.", "1"),
    Key("goal", "table", _goal, "The objective of the whole manifest."),
    Key("defaults", "table", _defaults, "Any key of a task but `id`, for tasks without it."),
    Key("task", "tables, each headed `[[task]]`", _tables, "The tasks, in order."),
)
TOP: Final = _readers(TOP_KEYS)
