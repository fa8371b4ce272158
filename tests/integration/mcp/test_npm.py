"""Against a server of files that others wrote, from the npm registry."""

from typing import TYPE_CHECKING

import pytest

from loopctl.calls import Annotations, ToolResult

if TYPE_CHECKING:
    from tests.integration.mcp.conftest import Bench
    from tests.integration.npm import Npm


@pytest.mark.slow
def test_the_server_of_files_sees_the_worktree_and_nothing_else(bench: "Bench", npm: "Npm") -> None:
    servers = bench.open(files={"command": (npm.files, ".")})
    one, two = bench.box("one"), bench.box("two")
    tools = servers.tools(one)
    assert tools["mcp__files__read_text_file"].annotations.read_only
    assert tools["mcp__files__write_file"].annotations == Annotations(idempotent=True)
    for box in (one, two):
        write = servers.tools(box)["mcp__files__write_file"].tool
        made = write.run({"path": "made.txt", "content": box.name}, "k")
        assert isinstance(made, ToolResult)
        assert not made.is_error
        assert (box.workdir / "made.txt").read_text() == box.name
    read = tools["mcp__files__read_text_file"].tool
    assert read.run({"path": "made.txt"}, "k") == ToolResult("one")
    outside = read.run({"path": str(two.workdir / "made.txt")}, "k")
    assert isinstance(outside, ToolResult)
    assert outside.is_error
    assert "outside allowed directories" in outside.content
