"""Against a server that others wrote, from the npm registry."""

import os
import shutil
import subprocess
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from loopctl.calls import Annotations, ToolResult

if TYPE_CHECKING:
    from tests.integration.mcp.conftest import Bench

PACKAGE = "@modelcontextprotocol/server-filesystem"


@pytest.fixture(scope="module")
def program(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The server's program, installed."""
    npm = shutil.which("npm")
    if npm is None:
        pytest.skip("npm is not installed")
    prefix = tmp_path_factory.mktemp("npm")
    done = subprocess.run(
        [npm, "install", "--no-audit", "--no-fund", "--prefix", prefix, PACKAGE],
        env={**os.environ, "HOME": str(prefix)},
        capture_output=True,
        text=True,
        timeout=240,
        check=False,
    )
    if done.returncode:
        pytest.skip(f"npm cannot install {PACKAGE}: {done.stderr[-300:]}")
    return prefix / "node_modules/.bin/mcp-server-filesystem"


@pytest.mark.slow
def test_the_server_of_files_sees_the_worktree_and_nothing_else(
    bench: "Bench", program: Path
) -> None:
    servers = bench.open(files={"command": (str(program), ".")})
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
