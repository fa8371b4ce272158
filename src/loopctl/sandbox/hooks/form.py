"""What a hook is told on its standard input, in Claude Code's form. Pure.

Tools of this house that Claude Code has as well go by its name, with its arguments and whole paths,
so that a hook which was written for it sees what it looks for. Ours stand beside them.
"""

import json
import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Final

from loopctl.calls import ToolCall, ToolResult

PRE: Final = "PreToolUse"
POST: Final = "PostToolUse"

_TOOLS: Final[Mapping[str, tuple[str, Mapping[str, str]]]] = {
    "bash": ("Bash", {"command": "command"}),
    "read_file": ("Read", {"path": "file_path", "start": "offset", "lines": "limit"}),
    "write_file": ("Write", {"path": "file_path", "content": "content"}),
    "edit_file": ("Edit", {"path": "file_path", "old": "old_string", "new": "new_string"}),
    "search": ("Grep", {"pattern": "pattern", "path": "path"}),
}
_PATH: Final = "path"


def names(tool: str) -> tuple[str, ...]:
    """Return the names by which a hook may mean a tool: Claude Code's and ours."""
    known = _TOOLS.get(tool)
    return (known[0], tool) if known else (tool,)


def before(call: ToolCall, workdir: Path) -> bytes:
    """Return what is said of a call that is about to be made: one JSON object, ASCII."""
    return _dumped({"hook_event_name": PRE, **_of(call, workdir)})


def after(call: ToolCall, workdir: Path, result: ToolResult) -> bytes:
    """Return what is said of a call that was made."""
    response = {"content": result.content, "is_error": result.is_error}
    return _dumped({"hook_event_name": POST, **_of(call, workdir), "tool_response": response})


def _of(call: ToolCall, workdir: Path) -> dict[str, Any]:
    return {
        "session_id": call.session_id,
        "transcript_path": "",
        "cwd": str(workdir),
        "permission_mode": "default",
        "tool_name": names(call.tool)[0],
        "tool_input": _arguments(call, workdir),
        "tool_use_id": call.key,
        "loop_tool_name": call.tool,
        "loop_tool_input": dict(call.arguments),
    }


def _arguments(call: ToolCall, workdir: Path) -> dict[str, Any]:
    if call.tool not in _TOOLS:
        return dict(call.arguments)
    _, theirs = _TOOLS[call.tool]
    others = {name: value for name, value in call.arguments.items() if name not in theirs}
    known = {
        theirs[name]: _whole(value, workdir) if name == _PATH else value
        for name, value in call.arguments.items()
        if name in theirs
    }
    # A call may name anything; what the tool will heed has the last word.
    return {**others, **known}


def _whole(value: object, workdir: Path) -> object:
    return os.path.normpath(workdir / value) if isinstance(value, str) else value


def _dumped(document: Mapping[str, Any]) -> bytes:
    return json.dumps(document, sort_keys=True).encode("ascii") + b"\n"
