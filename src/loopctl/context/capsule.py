"""The capsule as a file: readable text with one fenced TOML block.

The block is the truth and the text above it is made from it. The goal is in the block verbatim.
Every value of the block stands on one line, so that nothing in it can look like a fence.
"""

import json
import re
import tomllib
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Final

from loopctl.records import Capsule, DeferredTask

_FENCE: Final = "```"
_BLOCK: Final = re.compile(r"^```toml\n(.*)^```$", re.DOTALL | re.MULTILINE)


def render(capsule: Capsule) -> str:
    """Return the text of ``context.md``."""
    lines = ["# Context of this run", "", "Next: " + (_line(capsule.current_step) or "nothing"), ""]
    for title, entries in (
        ("Decided", capsule.key_decisions),
        ("Assumed", capsule.assumptions),
        ("Open questions", capsule.open_questions),
        ("Deferred", tuple(_sentence(task) for task in capsule.deferred_tasks)),
    ):
        if entries:
            lines += [f"{title}:", *(f"- {_line(entry)}" for entry in entries), ""]
    return "\n".join([*lines, f"{_FENCE}toml", *_block(capsule), _FENCE, ""])


def without_keys(capsule: Capsule, redact: Callable[[str], str]) -> Capsule:
    """Return the capsule with the keys taken out of all but the goal."""

    def all_of(texts: tuple[str, ...]) -> tuple[str, ...]:
        return tuple(map(redact, texts))

    return Capsule(
        goal=capsule.goal,
        current_step=redact(capsule.current_step),
        key_decisions=all_of(capsule.key_decisions),
        verify_cmd=redact(capsule.verify_cmd),
        deferred_tasks=tuple(
            DeferredTask(
                task_id=task.task_id,
                question=redact(task.question),
                best_guess=redact(task.best_guess),
                answer=None if task.answer is None else redact(task.answer),
            )
            for task in capsule.deferred_tasks
        ),
        open_questions=all_of(capsule.open_questions),
        assumptions=all_of(capsule.assumptions),
    )


def parse(text: str) -> Capsule:
    """Return the capsule that a ``context.md`` holds.

    Raises:
        ValueError: There is no readable TOML block in it.
    """
    block = _BLOCK.search(text)
    if block is None:
        raise ValueError("the capsule has no fenced toml block")
    table = tomllib.loads(block[1])
    return Capsule(
        goal=table["goal"],
        current_step=table.get("current_step", ""),
        key_decisions=tuple(table.get("key_decisions", ())),
        verify_cmd=table.get("verify_cmd", ""),
        deferred_tasks=tuple(
            DeferredTask(
                task_id=entry["task_id"],
                question=entry["question"],
                best_guess=entry.get("best_guess", ""),
                answer=entry.get("answer"),
            )
            for entry in table.get("deferred_tasks", ())
        ),
        open_questions=tuple(table.get("open_questions", ())),
        assumptions=tuple(table.get("assumptions", ())),
    )


def read(path: Path) -> tuple[str, Capsule]:
    """Return the text of a ``context.md`` and the capsule that it holds.

    Raises:
        OSError: It cannot be read.
        ValueError: There is no readable TOML block in it.
        KeyError: The block has no goal.
    """
    text = path.read_bytes().decode("utf-8", "surrogateescape")
    return text, parse(text)


def _line(text: str) -> str:
    return " ".join(text.split())


def _sentence(task: DeferredTask) -> str:
    end = f"answered: {task.answer}" if task.answer is not None else "open"
    return f"{task.task_id}: {task.question} ({end})"


def _block(capsule: Capsule) -> list[str]:
    """Return the lines of the block; by hand, since it is written before each step.

    A library that keeps the style of TOML files takes 30 times as long.
    """
    lines = [
        f"goal = {_quoted(capsule.goal)}",
        f"current_step = {_quoted(capsule.current_step)}",
        f"key_decisions = {_array(capsule.key_decisions)}",
        f"verify_cmd = {_quoted(capsule.verify_cmd)}",
        f"open_questions = {_array(capsule.open_questions)}",
        f"assumptions = {_array(capsule.assumptions)}",
    ]
    for task in capsule.deferred_tasks:
        lines += [
            "",
            "[[deferred_tasks]]",
            f"task_id = {_quoted(task.task_id)}",
            f"question = {_quoted(task.question)}",
            f"best_guess = {_quoted(task.best_guess)}",
        ]
        if task.answer is not None:
            lines.append(f"answer = {_quoted(task.answer)}")
    return lines


def _array(texts: Iterable[str]) -> str:
    return f"[{', '.join(_quoted(text) for text in texts)}]"


def _quoted(text: str) -> str:
    """Return a basic string of TOML: JSON's escapes are all among its own; DEL needs one too."""
    return json.dumps(text, ensure_ascii=False).replace("\x7f", "\\u007f")
