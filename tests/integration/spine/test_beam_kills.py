"""SIGKILL while the options of a fork are tried: carried on, it ends as if nothing had happened."""

import dataclasses
import shutil
import signal
from collections import Counter
from collections.abc import Generator
from pathlib import Path
from typing import Any

import pytest

COMMAND = """
note "step ${LOOP_OPTION:-fork}"
case "${LOOP_OPTION:-fork}" in
  long) printf 'a\\nb\\nc\\n' > made;;
  short) echo a > made;;
  fork) echo before > begun; exec loop fork --question "Which loop?" --bucket quality --option long=so --option short=so;;
esac
"""
VERIFY = 'note "gate $(cat made 2>/dev/null | wc -l)"; grep -q a made'
SPREAD = 5
"""Kills of the suite."""
SWEEP = 150
"""Kills of the slow sweep, of some hundreds of points."""


@pytest.fixture
def forking(project: Any, tmp_path: Path) -> Any:
    note = tmp_path / "bin" / "note"
    note.parent.mkdir()
    note.write_text('#!/bin/sh\necho "$*" >> ../../../../beside\n')
    note.chmod(0o755)
    one = project.task("T1", COMMAND, verify_cmd=VERIFY, budget={"loops": 12})
    project.manifest(one)
    project.commit()
    path = f"{note.parent}:{project.env['PATH']}"
    return dataclasses.replace(project, env={**project.env, "PATH": path})


def copies(project: Any, tmp_path: Path) -> Generator[Any, None, None]:
    """Yield the project in places of its own; commands write what happens into a file beside it."""
    number = 0
    while True:
        number += 1
        root = tmp_path / f"copy{number}" / "project"
        shutil.copytree(project.root, root, symlinks=True)
        yield dataclasses.replace(project, root=root)
        shutil.rmtree(root.parent)


def happened(project: Any) -> Counter[str]:
    beside = project.root.parent / "beside"
    return Counter(beside.read_text().splitlines() if beside.exists() else [])


def end(project: Any) -> dict[str, Any]:
    """Return all that must not depend on kills."""
    for git in (project.git, project.own):
        assert git("fsck", "--strict", "--no-dangling") == ""
    kept = {ref.split("/", 3)[3] for ref in project.kept()}
    return {
        "tree": project.git("rev-parse", "loop/integration^{tree}"),
        "landed": project.landed(),
        "status": project.status("T1"),
        "runs": project.run_statuses(),
        "losers": {ref for ref in kept if "main." in ref and "+" not in ref},
        "left": project.leftovers(),
        "decisions": project.decisions(),
    }


def points(trace: Path) -> list[str]:
    """Return all passages of crash points, as the variable names them."""
    passed: Counter[str] = Counter()
    found = []
    for name in trace.read_text().splitlines():
        passed[name] += 1
        found.append(f"{name}:{passed[name]}")
    return found


def sweep(project: Any, tmp_path: Path, spread: int) -> int:
    made = copies(project, tmp_path)
    trace = tmp_path / "trace"
    whole = next(made)
    traced = dataclasses.replace(whole, env={**whole.env, "LOOP_FAILPOINT": f"trace={trace}"})
    assert traced.finish(traced.start()).code == 0
    expected, undisturbed = end(whole), happened(whole)
    assert expected["status"] == "done"
    assert undisturbed == Counter(
        {"step fork": 1, "step long": 1, "step short": 1, "gate 0": 1, "gate 1": 1, "gate 3": 1}
    )
    all_points = points(trace)
    chosen = all_points[:: max(1, len(all_points) // spread)]
    kills = 0
    for point in chosen:
        one = next(made)
        killed = dataclasses.replace(one, env={**one.env, "LOOP_FAILPOINT": point})
        code = killed.finish(killed.start()).code
        # Threads are never twice in the same order: a passage may not come.
        assert code in {-signal.SIGKILL, 0}, point
        kills += code != 0
        if code:
            again = one.finish(one.start())
            assert again.code == 0, (point, again.err)
            assert "Traceback" not in again.err
        assert end(one) == expected, point
        # A step that was cut short is taken again, with its gate; what had ended is not.
        more = happened(one) - undisturbed
        assert set(more.values()) <= {1}, (point, more)
    made.close()
    return kills


def test_a_kill_inside_a_beam_changes_nothing(forking: Any, tmp_path: Path) -> None:
    assert sweep(forking, tmp_path, SPREAD) >= SPREAD // 2


@pytest.mark.slow
@pytest.mark.timeout(1800)
def test_many_kills_inside_a_beam_change_nothing(forking: Any, tmp_path: Path) -> None:
    assert sweep(forking, tmp_path, SWEEP) >= SWEEP // 2
