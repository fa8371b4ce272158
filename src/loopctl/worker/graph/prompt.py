"""What a model is asked: the stable parts first, so that requests share as long a prefix as can be.

Rules, goal, task and what is known of it stay the same over a task; the past only grows at its
end, between compactions; what changes from step to step comes last. What is new in a request, the
newest turn and what changes, is kept below ``NEW`` of what stays. Equal requests give equal
messages.
"""

import math
from collections.abc import Iterator
from typing import Any, Final

from loopctl.domain import Criterion
from loopctl.fencing import clean, cut, fence, one_line
from loopctl.past import Past
from loopctl.steps import StepRequest
from loopctl.worker.graph.rules import SYSTEM

LEVELS: Final = 4
"""How often a request is shortened: by half of what is left each time, then by all of it."""

_SHORT_BYTES: Final = 160
"""What is left of a turn, or of a result, that was shortened."""

_SPARE_LEVEL: Final = 2
"""From which on memories are left out, and the observation is cut to ``_SEEN_BYTES``."""

_SEEN_BYTES: Final = 4096

NEW: Final = 0.22
"""What is new in a step's first request, at most, beside what the one before had already: with the
tools these share four fifths of the shorter one, and a little to spare for how texts are encoded."""

_LEAST_BYTES: Final = 1024
"""That a turn, or what changes, may take in any case: less would be of no use."""

_TODO_BYTES: Final = 240
_SETTLED_BYTES: Final = 400

_FENCE_BYTES: Final = 120
"""What a fence and its heading take, about."""

_KNOWN: Final = (
    "What may matter for this task, from the repository as it was when the task began, and from "
    "earlier work:"
)
_RECALLED: Final = "What may matter for this todo besides:"

Chat = dict[str, Any]


def assemble(request: StepRequest, level: int = 0, beside: int = 0) -> list[Chat]:
    """Return the messages with which a step begins.

    Args:
        request: The step.
        level: How far its past is shortened, from 0 to ``LEVELS``.
        beside: Bytes that are sent before the messages, the tools.
    """
    past = list(_past(request.past, level))
    stable = [SYSTEM, _task(request), *_known(request, level)]
    newest = _bytes(past[-1]) if request.past.turns else 0
    stays = beside + sum(map(_bytes, (*stable, *past))) - newest
    room = max(_LEAST_BYTES, int(stays * NEW) - newest)
    return [
        {"role": "system", "content": SYSTEM},
        *(_from_user(text) for text in (*stable[1:], *past, _now(request, level, room))),
    ]


def turn_bytes(messages: list[Chat], beside: int) -> int:
    """Return what the record of a step may take that was begun with ``messages``."""
    stays = beside + sum(_bytes(message["content"]) for message in messages[:-1])
    return max(_LEAST_BYTES, int(stays * NEW / 2))


def shortened(thread: list[Chat], level: int) -> list[Chat]:
    """Return a step's own messages, the oldest results of its calls reduced to one line."""
    results = [index for index, message in enumerate(thread) if message["role"] == "tool"]
    gone = set(results[: _share(len(results), level)])
    return [
        {**message, "content": _short(message["content"])} if index in gone else message
        for index, message in enumerate(thread)
    ]


def _bytes(text: str) -> int:
    return len(text.encode("utf-8", "replace"))


def _from_user(text: str) -> Chat:
    return {"role": "user", "content": text}


def _share(count: int, level: int) -> int:
    return count if level >= LEVELS else math.ceil(count * (1 - 0.5**level))


def _short(text: str) -> str:
    return f"(shortened) {one_line(text, _SHORT_BYTES)}"


def _task(request: StepRequest) -> str:
    task, option = request.task, request.option
    parts = ["The goal, verbatim:", clean(request.goal.text) or "(no more than the task)"]
    if request.goal.done_when:
        parts += ["", "It is met when:", *(f"- {_criterion(c)}" for c in request.goal.done_when)]
    parts += ["", f"Your task: {task.id} - {clean(task.title)}"]
    if task.prompt:
        parts += ["", clean(task.prompt)]
    if option is not None:
        parts += ["", f"Do it in this way ({clean(option.name)}): {clean(option.prompt)}"]
    if task.accept:
        parts += ["", "It is accepted when:", *(f"- {clean(line)}" for line in task.accept)]
    if task.output:
        parts += ["", f"Its result is the file {clean(task.output)}."]
    if task.is_prose:
        parts += ["", f"It is a text ({task.kind}): judges read it, and nothing you say of it."]
    if task.verify_cmd:
        parts += ["", f"It is verified by: {clean(task.verify_cmd)}"]
    if task.may_edit:
        globs = ", ".join(clean(glob) for glob in task.may_edit)
        parts += ["", f"Protected files that you may edit all the same: {globs}"]
    return "\n".join(parts)


def _criterion(criterion: Criterion) -> str:
    if criterion.check is not None:
        return f"`{clean(criterion.check)}` exits 0"
    return clean(criterion.criterion or "")


def _known(request: StepRequest, level: int) -> Iterator[str]:
    if request.known and level < _SPARE_LEVEL:
        parts = (fence(memory.text, memory.source) for memory in request.known)
        yield "\n\n".join((_KNOWN, *parts))


def _past(past: Past, level: int) -> Iterator[str]:
    for summary in past.summaries:
        name = f"Steps {summary.first} to {summary.last}, in short:"
        yield f"{name}\n{fence(summary.text, 'summary')}"
    gone = _share(len(past.turns), level)
    for index, turn in enumerate(past.turns):
        text = _short(clean(turn.text)) if index < gone else turn.text
        yield f"Step {turn.number}:\n{fence(text, 'record of the step')}"


def _now(request: StepRequest, level: int, room: int) -> str:
    """Return what changes from step to step; memories, and a long observation, are not vital.

    Args:
        request: The step.
        level: How far the request is shortened.
        room: Bytes that it should take at most; the plan, an answer and the order take theirs.
    """
    vital = []
    if request.todos:
        vital.append("The plan as it stands:\n" + "\n".join(_todos(request)))
    if request.answer is not None:
        vital.append(f"A person was asked about this task and has answered:\n{request.answer}")
    if request.settled:
        vital.append("Forks that are settled for this task:\n" + "\n".join(_settled(request)))
    order = _order(request)
    left = room - sum(map(_bytes, (*vital, order)))
    seen = clean(_observation(request))
    if seen:
        limit = _SEEN_BYTES if level >= _SPARE_LEVEL else max(_LEAST_BYTES, left - _FENCE_BYTES)
        vital.append(f"What came of your last step:\n{fence(cut(seen, limit), 'observation')}")
        left -= _bytes(vital[-1])
    recalled = _recalled(request, left) if level < _SPARE_LEVEL else []
    return clean("\n\n".join((*recalled, *vital, order)))


def _recalled(request: StepRequest, room: int) -> list[str]:
    """Return the memories for the todo that there is room for."""
    parts: list[str] = []
    for memory in request.recalled:
        part = fence(memory.text, memory.source)
        room -= _bytes(part)
        if room < _FENCE_BYTES:
            break
        parts.append(part)
    return [_RECALLED, *parts] if parts else []


def _todos(request: StepRequest) -> Iterator[str]:
    """Return the plan's lines; of those that are not at hand no more than their beginning."""
    is_marked = not request.step_goal or request.is_planning
    for line in request.todos:
        is_active = not is_marked and line.rstrip().endswith(request.step_goal.rstrip())
        is_marked = is_marked or is_active
        yield f"-> {line}" if is_active else f"   {one_line(clean(line), _TODO_BYTES)}"


def _settled(request: StepRequest) -> Iterator[str]:
    for fork in request.settled:
        how = f" ({fork.prompt})" if fork.prompt else ""
        yield f"- {one_line(clean(f'{fork.question} {fork.option}{how}'), _SETTLED_BYTES)}"


def _observation(request: StepRequest) -> str:
    """Return the observation without the newest turn's text, which the past ends with."""
    seen = request.observation
    if request.past.turns and request.past.turns[-1].text:
        seen = seen.replace(request.past.turns[-1].text, "")
    return seen.strip()


def _order(request: StepRequest) -> str:
    if request.is_planning:
        return (
            f"Now: {request.step_goal}\n"
            "This step makes the plan and nothing else. Look around where you need to, then call "
            "`plan` with the todos in the order of work; few and large ones are better than many. "
            "If the task is one piece of work, a single todo is a good plan."
        )
    if request.step_goal:
        return f"Now pursue this todo, and close it with `todo_done`:\n{request.step_goal}"
    return "Now do the task, and call `todo_done` when it is done."
