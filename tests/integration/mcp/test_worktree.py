"""Servers in the worktrees of a real repository."""

import json
import os
import subprocess
from pathlib import Path
from typing import TYPE_CHECKING

from loopctl.calls import ToolResult
from loopctl.sandbox.repository import OwnedRepository

if TYPE_CHECKING:
    from tests.integration.mcp.conftest import Bench


def repository(bench: "Bench") -> OwnedRepository:
    root = bench.root / "project"
    root.mkdir()
    who = ("-c", "user.name=A", "-c", "user.email=a@example.org")
    for words in (["init", "-q"], ["commit", "-q", "--allow-empty", "-m", "first"]):
        subprocess.run(
            ["git", *who, *words],
            cwd=root,
            env={"PATH": os.environ["PATH"], "HOME": bench.env["HOME"]},
            check=True,
        )
    owned = OwnedRepository(root, root / ".local", branch="loop/integration", env=bench.env)
    owned.sync()
    return owned


def test_a_server_sees_the_worktree_through_restores_and_is_gone_before_it_closes(
    bench: "Bench",
) -> None:
    owned = repository(bench)
    servers = bench.raw("plain", ".")
    owned.before_close(servers.leave)
    sandbox = owned.open_sandbox("T1-main", owned.head())
    empty = sandbox.snapshot()
    tools = servers.tools(sandbox)
    write, where = tools["mcp__raw__write"].tool, tools["mcp__raw__where"].tool
    for _ in range(2):
        assert write.run({"path": "made.txt"}, "k") == ToolResult("written")
        assert sandbox.snapshot() != empty
        # A rescue in between has the worktree made anew.
        sandbox.rescue()
        sandbox.restore(empty)
        assert not (sandbox.workdir / "made.txt").exists()
    found = where.run({}, "k")
    assert isinstance(found, ToolResult)
    # A command of the sandbox ends what it has started itself, and the server is none of that.
    assert sandbox.run("true", timeout_s=60).returncode == 0
    again = where.run({}, "k")
    assert isinstance(again, ToolResult)
    pids = [json.loads(result.content)["pid"] for result in (found, again)]
    assert pids[0] == pids[1]
    sandbox.close()
    assert bench.logged()[-1] == "end of input"
    assert not Path(f"/proc/{pids[0]}").exists()
    assert not sandbox.workdir.exists()
