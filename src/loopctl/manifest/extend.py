"""Adds a goal and tasks to the text of a manifest and changes nothing else of it. Pure."""

import json
import tomllib
from collections.abc import Iterable, Mapping
from typing import Any, Final

from loopctl.domain import Addition, Criterion, Goal, Manifest, Task
from loopctl.manifest.writeback import WriteRefusedError
from loopctl.tomlsource.read import BOM
from loopctl.tomlsource.scan import Places
from loopctl.tomlsource.words import UNPRINTABLE

EMPTY: Final = "schema = 1\n"
"""What a manifest that was not there before begins with."""


def extended(text: str, document: Mapping[str, Any], addition: Addition) -> str:
    """Return the text with the addition: tasks at its end, the goal there too or in its old place.

    What stood in the text stays as it was, byte for byte, but for the values of a goal that is
    replaced.

    Args:
        text: Of the whole file, with its BOM where it has one; :data:`EMPTY` for a new one.
        document: What ``text`` holds.
        addition: What is added.

    Raises:
        WriteRefusedError: The text cannot take it as it stands; says why.
    """
    bom = BOM if text.startswith(BOM) else ""
    body = text[len(bom) :]
    ending = "\r\n" if "\r\n" in body else "\n"
    meant = dict(document)
    lines: list[str] = []
    if addition.goal is not None:
        meant["goal"] = _goal_table(addition.goal)
        if "goal" in document:
            body = _with_goal(body, addition.goal)
        else:
            lines += _goal_lines(addition.goal)
    lines += _note_lines(addition.notes)
    for task in addition.tasks:
        lines += ["", "[[task]]", *(f"{key} = {_value(value)}" for key, value in _task(task))]
    meant["task"] = [*document.get("task", []), *(dict(_task(task)) for task in addition.tasks)]
    if not meant["task"]:
        del meant["task"]
    if lines:
        gap = "" if not body or body.endswith("\n") else ending
        body = f"{body}{gap}{ending.join([*lines, ''])}"
    if not _holds(body, meant):
        raise WriteRefusedError(
            "its form cannot take more tasks; head each with [[task]], and the goal with [goal]"
        )
    return bom + body


def written(manifest: Manifest) -> str:
    """Return the text of a manifest that the harness makes for itself, whatever its tasks say."""
    lines = [EMPTY.rstrip("\n"), *_goal_lines(manifest.goal)]
    for task in manifest.tasks:
        own: list[tuple[str, Any]] = [
            ("worker", task.worker),
            ("mode", task.mode.value if task.mode is not None else None),
            ("command", task.command),
            ("may_edit", list(task.may_edit)),
        ]
        keys = [*_task(task), *((key, value) for key, value in own if value)]
        lines += ["", "[[task]]", *(f"{key} = {_value(value)}" for key, value in keys)]
    return "\n".join([*lines, ""])


def _with_goal(text: str, goal: Goal) -> str:
    """Return the text with other values in its goal; what its table lacks comes after its text."""
    places = Places(text)
    words = places.find(("goal", "text"))
    if words is None or words.value is None:
        raise WriteRefusedError("its [goal] has no text; give it one")
    done_when = places.find(("goal", "done_when"))
    new_text, new_done = _value(goal.text), _done_when(goal.done_when)
    if done_when is not None and done_when.value is not None:
        edits = [(words.value, new_text), (done_when.value, new_done)]
    else:
        inline = places.find(("goal",))
        joint = ", " if inline is not None and inline.value is not None else "\n"
        edits = [(words.value, f"{new_text}{joint}done_when = {new_done}")]
    for (start, end), value in sorted(edits, reverse=True):
        text = f"{text[:start]}{value}{text[end:]}"
    return text


def _goal_table(goal: Goal) -> dict[str, Any]:
    return {"text": goal.text, "done_when": [dict([_criterion(one)]) for one in goal.done_when]}


def _goal_lines(goal: Goal) -> list[str]:
    return [
        "",
        "[goal]",
        f"text = {_value(goal.text)}",
        f"done_when = {_done_when(goal.done_when)}",
    ]


def _done_when(criteria: Iterable[Criterion]) -> str:
    tables = [f"  {{ {key} = {_value(words)} }}," for key, words in map(_criterion, criteria)]
    return "\n".join(["[", *tables, "]"]) if tables else "[]"


def _criterion(criterion: Criterion) -> tuple[str, str]:
    if criterion.check is not None:
        return "check", criterion.check
    return "criterion", criterion.criterion or ""


def _note_lines(notes: Iterable[str]) -> list[str]:
    lines = [f"# {UNPRINTABLE.sub(' ', note)}" for note in notes]
    return ["", *lines] if lines else []


def _task(task: Task) -> list[tuple[str, Any]]:
    """Return the keys of a task that say something, in the order of the reference."""
    keys: list[tuple[str, Any]] = [
        ("id", task.id),
        ("title", task.title),
        ("status", task.status.value),
        ("area", list(task.area)),
        ("deps", list(task.deps)),
        ("model", task.model),
        ("verify_cmd", task.verify_cmd),
        ("prompt", task.prompt),
        ("accept", list(task.accept)),
    ]
    return [(key, value) for key, value in keys if value]


def _value(value: str | list[str]) -> str:
    """Return a text, or a list of texts, on one line: JSON's escapes are TOML's, but for DEL."""
    return json.dumps(value, ensure_ascii=False).replace("\x7f", "\\u007f")


def _holds(text: str, document: Mapping[str, Any]) -> bool:
    try:
        return tomllib.loads(text) == document
    except (ValueError, RecursionError):
        return False
