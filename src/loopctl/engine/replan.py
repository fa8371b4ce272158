"""Makes and revises the todos of a plan: pure.

Source: the loop's low-level design §5.1; a re-plan inserts and abandons, and counts once.
"""

from dataclasses import replace
from typing import Final

from loopctl.plan import OPEN_TODOS, Plan, Todo, TodoStatus

MAX_TODOS: Final = 50
"""Open todos of one plan; a longer list is no plan any more."""


def rejection(texts: tuple[str, ...]) -> str:
    """Return why ``texts`` cannot be the open todos of a plan; empty where they can."""
    if not texts or not all(text.strip() for text in texts):
        return "a plan needs at least one todo, and none of them empty"
    if len(texts) > MAX_TODOS:
        return f"a plan has at most {MAX_TODOS} open todos, this one {len(texts)}"
    if len(set(texts)) < len(texts):
        return "a plan names each todo once"
    return ""


def planned(plan: Plan, texts: tuple[str, ...]) -> Plan:
    """Return the plan with its first todos; ``texts`` are not rejected."""
    todos = tuple(Todo(id=str(number), text=text) for number, text in enumerate(texts, 1))
    return replace(plan, todos=todos).with_cursor()


def revised(plan: Plan, texts: tuple[str, ...]) -> Plan:
    """Return the plan with ``texts`` as its open todos, in that order; counts one re-plan.

    Open todos that are named keep their id and attempts, others are abandoned; what is closed
    stays. A proposal that changes nothing is no re-plan, and gives the same plan back.
    """
    still_open = {todo.text: todo for todo in plan.todos if todo.status in OPEN_TODOS}
    if tuple(still_open) == texts:
        return plan
    closed = [todo for todo in plan.todos if todo.status not in OPEN_TODOS]
    abandoned = [
        replace(todo, status=TodoStatus.ABANDONED)
        for text, todo in still_open.items()
        if text not in texts
    ]
    number = len(plan.todos)
    ahead: list[Todo] = []
    for text in texts:
        kept = still_open.get(text)
        if kept is None:
            number += 1
            kept = Todo(id=str(number), text=text)
        ahead.append(replace(kept, status=TodoStatus.PENDING))
    todos = (*closed, *abandoned, *ahead)
    return replace(plan, todos=todos, replans=plan.replans + 1).with_cursor()
