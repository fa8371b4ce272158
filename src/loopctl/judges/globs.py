"""Globs over the paths of a tree: the one matcher behind ``protect`` and ``may_edit``.

Paths and globs are matched case-sensitively, component by component:

* ``*`` and ``?`` stand for characters of one component, ``[abc]`` / ``[!abc]`` for one of them;
* ``**`` as a whole component stands for any number of components, also none; at the end it
  stands for everything below, and not for the folder itself;
* a glob without a slash (but for one at its end) matches at any depth, any other from the root;
* a glob that matches a folder covers all that is below it; with a slash at its end it matches
  folders only.
"""

import re
from collections.abc import Iterable
from enum import Enum
from functools import lru_cache


class Match(Enum):
    """How a glob matches a path."""

    NONE = "none"
    PATH = "path"
    BELOW = "below"


def match(glob: str, path: str) -> Match:
    """Return whether ``glob`` names ``path`` itself, a folder above it, or neither."""
    pattern, is_folder = _compile(glob)
    if pattern is None:
        return Match.NONE
    if not is_folder and pattern.fullmatch(path):
        return Match.PATH
    parents = _parents(path)
    if any(pattern.fullmatch(parent) for parent in parents):
        return Match.BELOW
    return Match.NONE


def matches_any(globs: Iterable[str], path: str) -> bool:
    """Return whether one of ``globs`` covers ``path``."""
    return any(match(glob, path) is not Match.NONE for glob in globs)


def _parents(path: str) -> list[str]:
    parts = path.split("/")
    return ["/".join(parts[:count]) for count in range(1, len(parts))]


@lru_cache(maxsize=512)
def _compile(glob: str) -> tuple[re.Pattern[str] | None, bool]:
    """Return the pattern, and whether it names folders only."""
    is_folder = glob.endswith(("/", "/**")) or glob == "**"
    parts = [part for part in glob.split("/") if part not in {"", "."}]
    while is_folder and parts and parts[-1] == "**":
        parts.pop()
    if not parts:
        return (re.compile(".*", re.DOTALL), False) if "**" in glob else (None, False)
    if len(parts) == 1 and "/" not in glob.rstrip("/"):
        parts.insert(0, "**")
    text = ""
    for index, part in enumerate(parts):
        is_last = index == len(parts) - 1
        text += "(?:.*/)?" if part == "**" else _component(part) + ("" if is_last else "/")
    try:
        return re.compile(text, re.DOTALL), is_folder
    except re.error:  # a range that runs backwards names no character
        return None, is_folder


def _component(part: str) -> str:
    """Return one component as a regular expression; no wildcard of it matches a slash."""
    text, index = "", 0
    while index < len(part):
        char = part[index]
        index += 1
        if char == "*":
            text += "[^/]*"
        elif char == "?":
            text += "[^/]"
        elif char == "[" and (end := _class_end(part, index)) > 0:
            negated = part[index] == "!"
            body = part[index + negated : end]
            text += f"(?!/)[{'^' if negated else ''}{_class_body(body)}]"
            index = end + 1
        else:
            text += re.escape(char)
    return text


def _class_end(part: str, start: int) -> int:
    """Return where the class that begins at ``start`` is closed, -1 where it is not."""
    first = start + 1 if part[start : start + 1] == "!" else start
    return part.find("]", first + 1)


def _class_body(body: str) -> str:
    return re.sub(r"([\\^\[\]&~|])", r"\\\1", body)
