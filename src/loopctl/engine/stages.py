"""The stages of a prose task, as todos of its plan: pure.

draft (the worker's own todos) ► critic ► answer each criticism ► … ► synthesis ► judge ► …

Which stage a plan is in can be told from the ids of its todos alone, so a checkpoint knows it.
"""

from dataclasses import replace
from typing import Final

from loopctl.domain import Task
from loopctl.engine.work import Work
from loopctl.plan import Plan, Todo, TodoStatus
from loopctl.ports import Worker
from loopctl.verdict import Check, GateResult, Verdict

REDRAFTS: Final = 2
"""How often the criticisms of a draft are answered before the synthesis."""

SYNTHESES: Final = 2
"""How often the final text is written, for each time that a person is asked about it."""

STATEMENT: Final = "given the goal"
"""What the summary of a synthesis begins with, in any case of letters."""

_REDRAFT: Final = "redraft-"
_SYNTHESIS: Final = "synthesis-"


def is_staged(work: Work, worker: Worker) -> bool:
    """Return whether a task goes through all stages; else its one todo meets the judge at once."""
    return work.task.is_prose and worker.makes_plans and not work.is_relay


def is_synthesis(todo: Todo | None) -> bool:
    """Return whether a todo writes the final text; the premium model does."""
    return todo is not None and todo.id.startswith(_SYNTHESIS)


def is_draft(plan: Plan) -> bool:
    """Return whether what a plan has come to is a draft: no synthesis was the last of its todos."""
    kept = [todo for todo in plan.todos if todo.status is not TodoStatus.ABANDONED]
    return not kept or not is_synthesis(kept[-1])


def planning(task: Task) -> str:
    """Return the sub-goal of a prose task's planning step."""
    return (
        "Break the task down into an ordered list of todos: what has to be found out, as deep as "
        f"the task requires, and last to write the draft of {_name(task)}. What critics say of the "
        "draft, and the final text, come after that by themselves."
    )


def after(plan: Plan, task: Task, gate: GateResult) -> Plan | None:
    """Return the plan with the todo that follows from what a judge of prose has found.

    Returns:
        ``None`` where no todo follows: no judge of prose was the last to speak, or the rounds are
        used up.
    """
    last = gate.checks[-1]
    if last.check is Check.CRITIQUE and last.verdict is not Verdict.UNKNOWN:
        number = _count(plan, _REDRAFT) + 1
        if last.verdict is Verdict.FAIL and number <= REDRAFTS:
            return _with(plan, f"{_REDRAFT}{number}", _redraft(task, number), last.tail)
        return _with_synthesis(plan, task, last.tail)
    if last.check is Check.ALIGNMENT and last.verdict is Verdict.FAIL:
        rounds = SYNTHESES * (1 + len(task.clarified))
        if _count(plan, _SYNTHESIS) < rounds:
            return _with_synthesis(plan, task, last.tail)
    return None


def is_undecided(gate: GateResult) -> bool:
    """Return whether the judge of the final text was the last to speak, and did not let it pass."""
    last = gate.checks[-1]
    return last.check is Check.ALIGNMENT and last.verdict is Verdict.FAIL


def result(plan: Plan) -> str:
    """Return what a plan has come to in its worker's words: of prose, how it serves the goal."""
    summaries = [todo.summary for todo in plan.todos if todo.summary]
    stated = [todo.summary for todo in plan.todos if todo.summary and is_synthesis(todo)]
    return stated[-1] if stated else "\n".join(summaries)


def unstated(todo: Todo | None, summary: str) -> str:
    """Return why a synthesis cannot be closed with a summary; empty where it can."""
    if not is_synthesis(todo) or summary.strip().casefold().startswith(STATEMENT):
        return ""
    return (
        f"the summary of this todo has to begin with '{STATEMENT.capitalize()}', and to say for "
        "each part of the goal and each acceptance line where the text serves it, and what it "
        "leaves open"
    )


def _with(plan: Plan, id_: str, text: str, points: str) -> Plan:
    """Return the plan with one todo more; the points stand in it, so that all of them are seen."""
    todo = Todo(id=id_, text=f"{text}\n{points}" if points else text)
    return replace(plan, todos=(*plan.todos, todo)).with_cursor()


def _with_synthesis(plan: Plan, task: Task, points: str) -> Plan:
    number = _count(plan, _SYNTHESIS) + 1
    text = (
        f"Write the final text of {_name(task)} (synthesis {number}): one text, from what was found "
        "out and for the goal as it is written. Where points are listed here, settle each of them "
        "in it. Settle yourself what is unclear and can be changed later, and say so in the text. "
        f"Close this todo with a summary that begins '{STATEMENT.capitalize()}' and says, for each "
        "part of the goal and each acceptance line, where the text serves it."
    )
    return _with(plan, f"{_SYNTHESIS}{number}", text, points)


def _redraft(task: Task, number: int) -> str:
    return (
        f"Answer each criticism of {_name(task)} (round {number}): think it through again from what "
        "was found out, not from the words of the draft; look up what is missing; then mend the "
        "text, or show in it why the criticism does not hold."
    )


def _count(plan: Plan, prefix: str) -> int:
    return sum(todo.id.startswith(prefix) for todo in plan.todos)


def _name(task: Task) -> str:
    return task.output or "its result"
