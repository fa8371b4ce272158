"""``read_file``: some lines of a file, numbered."""

from collections.abc import Mapping, Sequence
from typing import Any, Final

from loopctl.calls import Effect, ToolResult
from loopctl.sandbox.tools.tool import SHOWN_BYTES, RefusalError, WorkTool, spec_of
from loopctl.sandbox.tools.tree import Tree

LINE_CHARS: Final = 2000
"""What is shown of one line at most."""

_LINES: Final = 2000
_SPEC: Final = spec_of(
    "read_file",
    f"Read a text file of the worktree, with line numbers. Shows {_LINES} lines or "
    f"{SHOWN_BYTES} bytes at most and says how to read on.",
    1,
    path={"type": "string", "description": "Relative to the top of the worktree."},
    start={"type": "integer", "minimum": 1, "description": "First line; 1 if left out."},
    lines={"type": "integer", "minimum": 1, "description": "How many lines."},
)


def reader(tree: Tree, scratch: Tree) -> WorkTool:
    """Return the tool.

    Args:
        tree: The worktree.
        scratch: The folder of temporary files, where long outputs of commands are kept.
    """

    def read(arguments: Mapping[str, Any], _key: str) -> ToolResult:
        path = arguments["path"]
        content, _ = (scratch if scratch.holds(path) else tree).read(path)
        if is_binary(content):
            raise RefusalError(f"{path} is a binary file of {len(content)} bytes")
        return ToolResult(
            _shown(path, content, arguments.get("start", 1), arguments.get("lines", _LINES))
        )

    return WorkTool(_SPEC, Effect.NONE, read)


def is_binary(content: bytes) -> bool:
    """Return whether the content is no text: text has no NUL."""
    return b"\0" in content


def lines_of(content: bytes) -> list[bytes]:
    """Return the lines as an editor counts them, without their ends."""
    lines = content.split(b"\n")
    if not lines[-1]:
        lines.pop()
    return [line.removesuffix(b"\r") for line in lines]


def numbered(lines: Sequence[str], first: int) -> list[str]:
    """Return the lines with their numbers, from ``first`` on, long ones cut."""
    return [f"{number:6}\t{_cut(line)}" for number, line in enumerate(lines, first)]


def _shown(path: str, content: bytes, start: int, count: int) -> str:
    lines = lines_of(content)
    if not lines:
        return f"{path} is empty"
    if start > len(lines):
        raise RefusalError(f"{path} has {len(lines)} lines; start={start} is beyond its end")
    chosen = [line.decode("utf-8", "replace") for line in lines[start - 1 : start - 1 + count]]
    fitting = _fitting(numbered(chosen, start))
    end = start + len(fitting) - 1
    head = f"{path}, lines {start} to {end} of {len(lines)}{_peculiarities(content)}"
    tail = [f"(it goes on: start={end + 1})"] if end < len(lines) else []
    return "\n".join([head, *fitting, *tail])


def _fitting(rows: list[str]) -> list[str]:
    """Return as many rows as may be shown, at least one."""
    room = SHOWN_BYTES
    for index, row in enumerate(rows):
        room -= len(row.encode()) + 1
        if room < 0 and index:
            return rows[:index]
    return rows


def _peculiarities(content: bytes) -> str:
    """Return what the lines do not show."""
    found = []
    if content.startswith(b"\xef\xbb\xbf"):
        found.append("begins with a byte order mark")
    if endings := content.count(b"\r\n"):
        part = "" if endings == content.count(b"\n") else "some "
        found.append(f"{part}lines end with CRLF")
    if not content.endswith(b"\n"):
        found.append("no newline at the end")
    return f" ({'; '.join(found)})" if found else ""


def _cut(line: str) -> str:
    line = line.removeprefix("\ufeff")
    left = len(line) - LINE_CHARS
    return line if left <= 0 else f"{line[:LINE_CHARS]} [{left} more characters]"
