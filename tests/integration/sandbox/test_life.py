from pathlib import Path
from typing import Any

from loopctl.domain import Sha
from loopctl.ports import Repository, Sandbox
from loopctl.sandbox.repository import OwnedRepository


def test_a_task_goes_from_head_to_a_commit_of_the_integration_branch(
    users: Any, repo: OwnedRepository
) -> None:
    port: Repository = repo
    start, notice = repo.prepare_branch()
    assert (start, notice) == (Sha(users.git("rev-parse", "HEAD")), "")
    sandbox: Sandbox = port.open_sandbox("T1", start)
    assert sandbox.run("echo new > c; git status --short", timeout_s=20).stdout == b"?? c\n"
    tree = sandbox.snapshot()
    port.keep("refs/loop/run/T1/main", tree, start, "kept")
    message = "T1\n\nLoop-Task: T1\nLoop-Run: run\nLoop-Key: k1\n"
    landed = port.commit(tree, start, message)
    port.advance(landed, None)
    sandbox.close()
    assert not sandbox.workdir.exists()
    assert users.git("show", "loop/integration:c") == "new"
    assert [found.key for found in port.landings()] == ["k1"]
    assert users.git("status", "--porcelain") == ""
    assert list(Path(users.root, ".local", "trash").iterdir()) == []
