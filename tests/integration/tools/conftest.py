"""The work tools in a real worktree."""

import os
import subprocess
import tempfile
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from loopctl.calls import ToolResult, call_key
from loopctl.domain import Sha
from loopctl.ports import Sandbox
from loopctl.sandbox.repository import OwnedRepository
from loopctl.sandbox.tools.catalogue import work_tools
from loopctl.sandbox.tools.tool import WorkTool


@dataclass
class Bench:
    """One sandbox with its work tools."""

    sandbox: Sandbox
    tools: dict[str, WorkTool]
    outside: Path
    calls: int = 0

    @property
    def root(self) -> Path:
        return self.sandbox.workdir

    def use(self, name: str, **arguments: Any) -> ToolResult:
        self.calls += 1
        came = self.tools[name].run(arguments, call_key("s", 1, self.calls))
        assert isinstance(came, ToolResult)
        return came

    def done(self, name: str, **arguments: Any) -> str:
        """Use a tool that must succeed."""
        result = self.use(name, **arguments)
        assert not result.is_error, result.content
        return result.content

    def refused(self, name: str, **arguments: Any) -> str:
        """Use a tool that must refuse; all files stay as they were."""
        before = self.state()
        result = self.use(name, **arguments)
        assert result.is_error, result.content
        assert self.state() == before
        return result.content

    def state(self) -> dict[str, object]:
        """Return all that there is in the worktree and outside of it, links not followed."""
        found: dict[str, object] = {}
        for top in (self.root, self.outside):
            for path in sorted(top.rglob("*")):
                status = path.lstat()
                is_file = path.is_file() and not path.is_symlink()
                content = path.read_bytes() if is_file else b""
                found[str(path)] = (status.st_mode, content, path.is_symlink() and path.readlink())
        return found


def git(root: Path, env: dict[str, str], *args: str) -> str:
    done = subprocess.run(
        ["git", *args], cwd=root, env=env, check=True, capture_output=True, timeout=60
    )
    return done.stdout.decode().strip()


@pytest.fixture
def bench(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Bench]:
    temporary, home, root, outside = (
        tmp_path / name for name in ("tmp", "home", "project", "outside")
    )
    for folder in (temporary, home, root, outside):
        folder.mkdir()
    monkeypatch.setattr(tempfile, "tempdir", str(temporary))
    (home / ".gitconfig").write_text("[user]\n\tname = a\n\temail = a@example.org\n")
    env = {
        "PATH": os.environ["PATH"],
        "HOME": str(home),
        "LANG": "C.UTF-8",
        "TMPDIR": str(temporary),
    }
    (root / "src").mkdir()
    (root / "src/app.py").write_text("one\ntwo\nthree\n")
    (root / ".gitignore").write_text("build/\n*.log\n")
    (outside / "secret.txt").write_text("secret\n")
    git(root, env, "init", "-q", "-b", "main")
    git(root, env, "add", "-A")
    git(root, env, "commit", "-q", "-m", "begin")
    repository = OwnedRepository(root, root / ".local", branch="loop/integration", env=env)
    repository.sync()
    sandbox = repository.open_sandbox("t", Sha(repository.head()))
    yield Bench(sandbox, {tool.spec.name: tool for tool in work_tools(sandbox)}, outside)
    sandbox.close()
