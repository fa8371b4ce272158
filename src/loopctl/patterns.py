"""What the patterns of ``[policy]`` look like, and what they match. Pure.

======================  ==========================================================
``mcp:SERVER:TOOL``     calls of a tool of a server; ``mcp:SERVER`` means all of its tools
``mcp:SERVER:destructive``  those of its tools that may destroy something
``bash:COMMAND``        commands that a model runs, as they are or with more words
``step:TASK``           the steps of a task
``area:TAG``            the steps of all tasks with that tag
======================  ==========================================================

``*``, ``?`` and ``[abc]`` stand for what they stand for in file names.
"""

from collections.abc import Callable, Iterable
from fnmatch import fnmatchcase
from typing import Final

CALLS: Final = ("mcp", "bash")
"""Kinds that are about one call of a tool."""

STEPS: Final = ("step", "area")
"""Kinds that are about a whole task, asked before its next step."""

DESTRUCTIVE: Final = "destructive"


def only(*kinds: str) -> Callable[[str], str]:
    """Return what gives a pattern back if it is of one of ``kinds``, and else raises ValueError."""

    def check(pattern: str) -> str:
        kind, _, rest = pattern.partition(":")
        if kind not in kinds or not rest.strip():
            names = ", ".join(f"{one}:" for one in kinds)
            raise ValueError(f"begins with none of {names} and would never apply")
        if kind == "mcp" and "" in rest.split(":", 1):
            raise ValueError("names no server or no tool; write mcp:SERVER:TOOL, * stands for all")
        return pattern

    return check


def matches_tool(pattern: str, server: str, tool: str, *, is_destructive: bool) -> bool:
    """Return whether a pattern is about a tool of a server."""
    kind, _, rest = pattern.partition(":")
    wanted, _, name = rest.partition(":")
    if kind != "mcp" or not fnmatchcase(server, wanted):
        return False
    return fnmatchcase(tool, name or "*") or (name == DESTRUCTIVE and is_destructive)


def matches_command(pattern: str, command: str) -> bool:
    """Return whether a pattern is about a command: words parted by single spaces."""
    kind, _, rest = pattern.partition(":")
    wanted = " ".join(rest.split())
    return kind == "bash" and (fnmatchcase(command, wanted) or fnmatchcase(command, f"{wanted} *"))


def matches_task(pattern: str, task: str, tags: Iterable[str]) -> bool:
    """Return whether a pattern is about the steps of a task."""
    kind, _, rest = pattern.partition(":")
    if kind == "step":
        return fnmatchcase(task, rest)
    return kind == "area" and any(fnmatchcase(tag, rest) for tag in tags)
