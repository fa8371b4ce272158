"""``write_file``: a whole file, new or in the place of the old one."""

from collections.abc import Mapping
from typing import Any, Final

from loopctl.calls import Effect, ToolResult
from loopctl.sandbox.tools.tool import WorkTool, spec_of
from loopctl.sandbox.tools.tree import MAX_WRITE_BYTES, Tree

_SPEC: Final = spec_of(
    "write_file",
    "Write a whole text file of the worktree, exactly as given; missing folders are made. Use "
    f"edit_file to change a part of a file. At most {MAX_WRITE_BYTES} bytes.",
    2,
    path={"type": "string", "description": "Relative to the top of the worktree."},
    content={"type": "string", "description": "All that the file will hold."},
)


def writer(tree: Tree) -> WorkTool:
    """Return the tool."""

    def write(arguments: Mapping[str, Any], _key: str) -> ToolResult:
        path, content = arguments["path"], arguments["content"]
        is_new = tree.write(path, content.encode())
        lines = content.count("\n") + (not content.endswith("\n") and bool(content))
        counted = "1 line" if lines == 1 else f"{lines} lines"
        return ToolResult(f"{'wrote' if is_new else 'replaced'} {path}: {counted}")

    return WorkTool(_SPEC, Effect.INSIDE, write)
