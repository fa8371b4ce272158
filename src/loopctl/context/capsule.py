"""The capsule as a file: readable text with one fenced TOML block.

The block is the truth and the text above it is made from it. The goal is in the block verbatim.
"""

import re
import tomllib
from typing import Any, Final

import tomlkit

from loopctl.records import Capsule, DeferredTask

_FENCE: Final = "```"
_BLOCK: Final = re.compile(r"^```toml\n(.*)^```$", re.DOTALL | re.MULTILINE)


def render(capsule: Capsule) -> str:
    """Return the text of ``context.md``."""
    lines = ["# Context of this run", "", "Next: " + (capsule.current_step or "nothing"), ""]
    for title, entries in (
        ("Decided", capsule.key_decisions),
        ("Assumed", capsule.assumptions),
        ("Open questions", capsule.open_questions),
        ("Deferred", tuple(_sentence(task) for task in capsule.deferred_tasks)),
    ):
        if entries:
            lines += [f"{title}:", *(f"- {' '.join(entry.split())}" for entry in entries), ""]
    return "\n".join([*lines, f"{_FENCE}toml", tomlkit.dumps(_table(capsule)) + _FENCE, ""])


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


def _sentence(task: DeferredTask) -> str:
    end = f"answered: {task.answer}" if task.answer is not None else "open"
    return f"{task.task_id}: {task.question} ({end})"


def _table(capsule: Capsule) -> dict[str, Any]:
    deferred = [
        {
            "task_id": task.task_id,
            "question": task.question,
            "best_guess": task.best_guess,
            **({"answer": task.answer} if task.answer is not None else {}),
        }
        for task in capsule.deferred_tasks
    ]
    return {
        "goal": capsule.goal,
        "current_step": capsule.current_step,
        "key_decisions": list(capsule.key_decisions),
        "verify_cmd": capsule.verify_cmd,
        "open_questions": list(capsule.open_questions),
        "assumptions": list(capsule.assumptions),
        "deferred_tasks": deferred,
    }
