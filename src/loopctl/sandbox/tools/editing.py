"""``edit_file``: one place of a file, found by its text; mode and line endings stay."""

import re
from collections.abc import Mapping
from itertools import islice
from typing import Any, Final

from loopctl.calls import Effect, ToolResult
from loopctl.sandbox.tools.near import what_is_near
from loopctl.sandbox.tools.reading import is_binary
from loopctl.sandbox.tools.tool import RefusalError, WorkTool, spec_of
from loopctl.sandbox.tools.tree import MAX_WRITE_BYTES, Tree

_MOST: Final = 100
"""How many places are counted."""
_NAMED: Final = 10
_CRLF: Final = "\r\n"
_SPEC: Final = spec_of(
    "edit_file",
    "Replace one piece of text in a file of the worktree. `old` has to be there exactly once, "
    "letter by letter; add lines around it until it is. Line endings are taken care of.",
    3,
    path={"type": "string", "description": "Relative to the top of the worktree."},
    old={"type": "string", "description": "The text as it is now, white space included."},
    new={"type": "string", "description": "What is put in its place; may be empty."},
)


def editor(tree: Tree) -> WorkTool:
    """Return the tool."""

    def edit(arguments: Mapping[str, Any], _key: str) -> ToolResult:
        path, old, new = arguments["path"], arguments["old"], arguments["new"]
        if not old:
            raise RefusalError("old is empty; write_file makes a new file")
        if old == new:
            raise RefusalError("old and new are the same, so nothing would change")
        content, mode = tree.read(path, MAX_WRITE_BYTES)
        if is_binary(content):
            raise RefusalError(f"{path} is a binary file of {len(content)} bytes")
        # Bytes that are no UTF-8 stay what they are.
        text = content.decode("utf-8", "surrogateescape")
        start, end = _place(path, text, old)
        fresh = _with_endings(new, old, text, text[start:end])
        edited = f"{text[:start]}{fresh}{text[end:]}"
        tree.write(path, edited.encode("utf-8", "surrogateescape"), mode)
        first = text.count("\n", 0, start) + 1
        before, after = _span(first, text[start:end]), _span(first, fresh)
        return ToolResult(f"edited {path}: {before} became {after}")

    return WorkTool(_SPEC, Effect.INSIDE, edit)


def _place(path: str, text: str, old: str) -> tuple[int, int]:
    """Return where ``old`` is in ``text``, CRLF or not.

    Raises:
        RefusalError: It is there not at all, or several times.
    """
    words = r"\r?\n".join(re.escape(line) for line in old.split("\n"))
    # Looked at from every letter, since places may overlap; one that begins with a line's end
    # is found from both of its letters.
    found: dict[int, int] = {}
    for match in islice(re.finditer(f"(?=({words}))", text), 2 * _MOST):
        found.setdefault(match.end(1), match.start(1))
    if len(found) == 1:
        ((end, start),) = found.items()
        return start, end
    if not found:
        raise RefusalError(f"{path} does not hold that text. {what_is_near(text, old)}")
    starts = list(found.values())
    lines = [str(text.count("\n", 0, start) + 1) for start in starts[:_NAMED]]
    more = ", ..." if len(starts) > _NAMED else ""
    count = str(len(starts)) if len(starts) < _MOST else f"at least {_MOST}"
    raise RefusalError(
        f"{path} holds that text {count} times, at lines {', '.join(lines)}{more}; add lines "
        "around it until there is only one"
    )


def _with_endings(new: str, old: str, text: str, replaced: str) -> str:
    """Return ``new`` with the line endings of what it replaces, else of the file."""
    if "\r" in old or "\r" in new:
        return new
    sample = replaced if "\n" in replaced else text
    is_crlf = 2 * sample.count(_CRLF) > sample.count("\n")
    return new.replace("\n", _CRLF) if is_crlf else new


def _span(first: int, text: str) -> str:
    last = first + text.removesuffix("\n").count("\n")
    return f"line {first}" if last == first else f"lines {first} to {last}"
