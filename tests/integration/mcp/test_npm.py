"""Against servers that others wrote, from the npm registry."""

import os
import shutil
import socket
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from loopctl.calls import Annotations, Outcome, ToolResult

if TYPE_CHECKING:
    from tests.integration.mcp.conftest import Bench

FILES = "@modelcontextprotocol/server-filesystem"
EVERYTHING = "@modelcontextprotocol/server-everything"


@pytest.fixture(scope="module")
def bin_of(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder with the servers' programs, installed."""
    npm = shutil.which("npm")
    if npm is None:
        pytest.skip("npm is not installed")
    prefix = tmp_path_factory.mktemp("npm")
    done = subprocess.run(
        [npm, "install", "--no-audit", "--no-fund", "--prefix", prefix, FILES, EVERYTHING],
        env={**os.environ, "HOME": str(prefix)},
        capture_output=True,
        text=True,
        timeout=240,
        check=False,
    )
    if done.returncode:
        pytest.skip(f"npm cannot install {FILES} and {EVERYTHING}: {done.stderr[-300:]}")
    return prefix / "node_modules/.bin"


@contextmanager
def everything(programs: Path, home: Path, port: int) -> Iterator[None]:
    """Run the server that has one of everything, over HTTP, until it listens."""
    env = {"PATH": os.environ["PATH"], "HOME": str(home), "PORT": str(port)}
    with subprocess.Popen(
        [programs / "mcp-server-everything", "streamableHttp"],
        env=env,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.PIPE,
        text=True,
    ) as process:
        try:
            assert process.stderr is not None
            assert any("listening on port" in line for line in process.stderr)
            yield
        finally:
            process.kill()


@pytest.mark.slow
def test_a_server_over_http_is_called_and_again_after_it_was_killed(
    bench: "Bench", bin_of: Path, tmp_path: Path
) -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
    servers = bench.open(every={"url": f"http://127.0.0.1:{port}/mcp"})
    for said in ("before", "after"):
        with everything(bin_of, tmp_path, port):
            tools = servers.tools(bench.box())
            echoed = tools["mcp__every__echo"].tool.run({"message": said}, "k")
            assert echoed == ToolResult(f"Echo: {said}")
        gone = tools["mcp__every__echo"].tool.run({"message": said}, "k")
        assert isinstance(gone, ToolResult | Outcome)
        assert gone is Outcome.UNKNOWN or getattr(gone, "is_error", False)


@pytest.mark.slow
def test_the_server_of_files_sees_the_worktree_and_nothing_else(
    bench: "Bench", bin_of: Path
) -> None:
    servers = bench.open(files={"command": (str(bin_of / "mcp-server-filesystem"), ".")})
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
