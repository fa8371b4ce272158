"""``--json``: one document on stdout: of what was done, or of why nothing was."""

import json
import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from loopctl.sandbox.confine import landlock

KEYS = {
    *("schema", "run_id", "status", "goal", "base", "head", "branch", "started", "ended"),
    *("tasks", "decisions", "usage"),
}


def unconfinable(project: Any) -> None:
    """Require confinement with a bubblewrap that does not work."""
    broken = project.root.parent / "bin" / "bwrap"
    broken.parent.mkdir()
    broken.write_text("#!/bin/sh\nexit 1\n")
    broken.chmod(0o700)
    path = f"{broken.parent}{os.pathsep}{project.env['PATH']}"
    # The environment of this process is the test's own too, and is put back after it.
    for name, value in (("PATH", path), ("LOOP_SET_SANDBOX__CONFINE", "require")):
        project.env[name] = os.environ[name] = value


BREAKAGES: dict[str, Callable[[Any], None]] = {
    "no manifest": lambda p: (p.root / "tasks" / "ACTIVE.toml").unlink(),
    "broken manifest": lambda p: p.write("tasks/ACTIVE.toml", "schema = "),
    "broken settings": lambda p: p.settings("[loop]\njobs = 'many'\n"),
    "confinement": unconfinable,
    "no worker": lambda p: p.manifest(p.task("T1", None, worker="graph", prompt="do it")),
    "diverged": lambda p: p.git(
        "branch", "loop/integration", p.git("commit-tree", "-m", "x", "HEAD^{tree}")
    ),
    "bad branch": lambda p: p.settings('[land]\nbranch = "a..b"\n'),
}


@pytest.mark.parametrize("breakage", BREAKAGES)
def test_where_nothing_was_done_the_document_says_why(
    project: Any, breakage: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(landlock, "abi", lambda: 0)
    BREAKAGES[breakage](project)
    done = project.loop("--json")
    assert done.code == 2
    refusal = json.loads(done.out)
    assert set(refusal) == {"schema", "error", "exit_code"}
    assert done.err == f"loop: {refusal['error']['message']}\n"
    assert "Traceback" not in done.err


@pytest.mark.parametrize(
    "argv",
    [
        ("--json", "T9"),
        ("--json", "--jobs", "0"),
        ("--json", "--no-such-option"),
        ("--json", "--area", "none"),
        ("--json", "--verify", ""),
        ("land", "--json"),
        ("report", "--json"),
        ("show", "T9", "--json"),
        ("resume", "--json"),
        ("answer", "T1", "yes", "--json"),
        ("recover", "refs/loop/x", "--branch", "y"),
    ],
)
def test_bad_usage_prints_no_result_on_stdout(project: Any, argv: tuple[str, ...]) -> None:
    done = project.loop(*argv)
    assert done.code == 2
    if "--json" in argv:
        assert json.loads(done.out)["error"]["message"] in done.err
    else:
        assert done.out == ""
    assert done.err
    assert "Traceback" not in done.err


def document(done: Any) -> dict[str, Any]:
    found = json.loads(done.out)
    assert set(found) >= KEYS
    assert found["schema"] == 1
    assert done.out.isascii()
    return dict(found)


@pytest.mark.parametrize(
    ("command", "verify", "code", "status"),
    [
        ("echo made > made", "true", 0, "complete"),
        ("false", "true", 4, "stalled"),
        ("echo made > made", None, 3, "needs_human"),
        ("no-such-program", "true", 3, "needs_human"),
    ],
)
def test_one_document_is_printed_whatever_the_run_came_to(
    project: Any, command: str, verify: str | None, code: int, status: str
) -> None:
    project.manifest(project.task("T1", command, verify_cmd=verify))
    done = project.loop("--json")
    assert done.code == code
    found = document(done)
    assert found["status"] == status
    [folder] = (project.root / ".local" / "runs").iterdir()
    assert json.loads((folder / "run.json").read_text()) == found
    for argv in (
        ("status", "--json"),
        ("runs", "--json"),
        ("show", "T1", "--json"),
        ("report", "--json"),
        ("recover", "--json"),
    ):
        assert json.loads(project.loop(*argv).out)


def test_an_empty_frontier_still_prints_its_document(project: Any) -> None:
    project.manifest(project.task("T1", status="done"), project.task("T2", status="backlog"))
    done = project.loop("--json")
    assert done.code == 0
    assert document(done)["status"] == "complete"
    project.manifest("")
    done = project.loop("--json")
    assert "Traceback" not in done.err
    assert done.code in {0, 2}


def test_a_reader_that_goes_away_does_not_disturb_the_run(project: Any, tmp_path: Path) -> None:
    process = project.start()
    process.stdout.close()
    process.stderr.close()
    process.wait(timeout=60)
    assert process.returncode == 0
    project.check(None)
    assert project.landed() == ["T1"]
