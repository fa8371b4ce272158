"""Draws how a task's status moves, from the table that decides it."""

from collections import defaultdict

from loopctl.domain import TaskStatus
from loopctl.engine.transitions import TRANSITIONS


def render() -> str:
    """Return ``engine/transitions.py`` as a mermaid block: an arrow for each pair of statuses."""
    arrows: defaultdict[tuple[str, str], list[str]] = defaultdict(list)
    for state in TaskStatus:
        for signal, target in TRANSITIONS.get(state, {}).items():
            arrows[_name(state), _name(target)].append(signal.value)
    lines = ["```mermaid", "stateDiagram-v2"]
    lines += [f'    state "{state}" as {_name(state)}' for state in TaskStatus if "-" in state]
    lines += ["    [*] --> backlog", "    [*] --> todo"]
    lines += [f"    {old} --> {new}: {', '.join(by)}" for (old, new), by in arrows.items()]
    return "\n".join([*lines, "```", ""])


def _name(state: TaskStatus) -> str:
    return state.value.replace("-", "_")
