import os
import signal
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner

from loopctl.bootstrap import Project, open_project
from loopctl.cli.app import build
from loopctl.domain import RunOptions
from loopctl.errors import LeaseHeldError, UsageError

Wait = Callable[[Callable[[], object], str], None]
Gone = Callable[[int], bool]


@pytest.fixture
def project(bench: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Project:
    """The bench's project in this process, which spares starting others."""
    for name, value in bench.env.items():
        monkeypatch.setenv(name, value)
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path / "tmp"))
    return open_project(bench.root)


def refs(project: Project) -> set[str]:
    return {one.ref for one in project.kept()}


@pytest.fixture
def half(bench: Any, project: Project) -> tuple[str, str, str]:
    """One result has landed, another has not; return the run and both refs."""
    path = bench.root / "tasks" / "ACTIVE.toml"
    path.write_text(path.read_text().replace("test -e B.txt", "false"))
    bench.open_gates("A", "B")
    project.run(RunOptions(), ())
    run_id = project.runs()[0].id
    landed, not_landed = (f"refs/loop/{run_id}/{task}/main" for task in "AB")
    assert refs(project) == {landed, not_landed}
    return run_id, landed, not_landed


def loop(bench: Any, *words: str) -> list[str]:
    argv = ["-C", str(bench.root), *words]
    result = CliRunner().invoke(build(), argv, prog_name="loop")
    assert result.exit_code == 0
    return result.stdout.splitlines()


def test_clean_forgets_what_has_landed_and_what_is_named(
    bench: Any, project: Project, half: tuple[str, str, str]
) -> None:
    _, landed, not_landed = half
    with pytest.raises(UsageError, match="nothing is kept as refs/loop/x/y/z"):
        project.clean([not_landed, "refs/loop/x/y/z"])
    assert loop(bench, "clean", "--dry-run") == [
        f"would be removed: {landed}",
        "would free: 1 kept tree, 0 leftovers of 0 bytes",
    ]
    assert refs(project) == {landed, not_landed}
    assert loop(bench, "clean") == [
        f"removed: {landed}",
        "freed: 1 kept tree, 0 leftovers of 0 bytes",
    ]
    assert loop(bench, "clean") == ["nothing to clean"]
    assert refs(project) == {not_landed}
    assert project.clean([not_landed]).refs == (not_landed,)
    assert refs(project) == set()


def test_naming_a_run_names_all_that_it_keeps_and_nothing_of_others(
    bench: Any, project: Project, half: tuple[str, str, str]
) -> None:
    run_id, landed, not_landed = half
    bench.manifest("C")
    bench.open_gates("C")
    project.run(RunOptions(), ())
    other = f"refs/loop/{project.runs()[0].id}/C/main"
    assert refs(project) == {landed, not_landed, other}
    assert set(project.clean(run_id=run_id).refs) == {landed, not_landed}
    assert refs(project) == {other}
    assert project.audit()[run_id] is not None


def test_clean_is_refused_while_a_run_is_driven(bench: Any, project: Project) -> None:
    told = bench.background()
    for refs, run_id in (((), None), ((), told["run_id"]), (("refs/loop/x/y/z",), None)):
        with pytest.raises(LeaseHeldError, match=f"process {told['pid']} is already driving"):
            project.clean(refs, run_id, is_dry=True)


def test_clean_removes_what_a_killed_run_left_but_keeps_its_files(
    bench: Any, project: Project, wait: Wait, gone: Gone
) -> None:
    told = bench.background()
    wait(lambda: bench.has_begun("A"), "the first step")
    os.kill(told["pid"], signal.SIGKILL)
    wait(lambda: gone(told["pid"]), "the end of the killed run")
    half_written = bench.folder(told["run_id"]) / ".run.json.x1"
    half_written.write_text("{")
    [worktree] = (project.local / "worktrees").iterdir()

    dry = project.clean(is_dry=True)
    assert dry.sandboxes == (worktree.name,)
    assert dry.files == (f"runs/{told['run_id']}/.run.json.x1",)
    assert dry.size_bytes > 0
    assert worktree.is_dir()
    assert half_written.exists()

    done = project.clean()
    assert (done.sandboxes, done.files, done.left) == (dry.sandboxes, dry.files, ())
    for name in ("worktrees", "exchange", "indexes"):
        assert list((project.local / name).iterdir()) == []
    assert not half_written.exists()
    [saved] = done.saved
    assert refs(project) == {saved}
    project.recover(saved, "saved")
    assert bench.git("show", "saved:A.txt") == "x\n"
    # The run still goes on afterwards.
    bench.open_gates("A", "B")
    assert project.resume(None, ()).exit_code == 0


def test_clean_makes_nothing_where_nothing_ever_ran(project: Project) -> None:
    assert project.clean().refs == ()
    assert not project.local.exists()
