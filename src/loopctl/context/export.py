"""The capsule as JSON lines for a bulk upsert: one record a line, under ids that stay the same.

``{"op": "upsert", "id", "kind", "run", "text", ...}``. The id is made of the run, the kind and what
makes the entry the same one another time: for a decision its question, not its answer. So a second
export of the same capsule is the same, and one made later updates what was exported before.
"""

import hashlib
import json
from collections.abc import Iterator
from typing import Any

from loopctl.records import Capsule


def records(capsule: Capsule, run_id: str) -> Iterator[dict[str, Any]]:
    """Yield the records of a capsule: the goal, where it stands, then each entry once."""
    seen: set[str] = set()
    for kind, key, fields in _entries(capsule):
        name = _id(run_id, kind, key)
        if name not in seen:
            seen.add(name)
            yield {"op": "upsert", "id": name, "kind": kind, "run": run_id, **fields}


def to_json_lines(capsule: Capsule, run_id: str) -> str:
    """Return the records of a capsule, one JSON object a line, non-ASCII as it is."""
    lines = (json.dumps(one, ensure_ascii=False) for one in records(capsule, run_id))
    return "".join(f"{line}\n" for line in lines)


def _entries(capsule: Capsule) -> Iterator[tuple[str, str, dict[str, Any]]]:
    yield "goal", "", {"text": capsule.goal}
    step = {"text": capsule.current_step, "verify_cmd": capsule.verify_cmd}
    yield "current_step", "", step
    for kind, texts in (
        ("key_decision", capsule.key_decisions),
        ("assumption", capsule.assumptions),
        ("open_question", capsule.open_questions),
    ):
        for text in texts:
            yield kind, text, {"text": text}
    for task in capsule.deferred_tasks:
        fields = {
            "task": task.task_id,
            "text": task.question,
            "best_guess": task.best_guess,
            "answer": task.answer,
        }
        yield "deferred_task", f"{task.task_id}\0{task.question}", fields


def _id(run_id: str, kind: str, key: str) -> str:
    text = f"{run_id}\0{kind}\0{key}".encode("utf-8", "surrogatepass")
    return hashlib.sha256(text).hexdigest()[:32]
