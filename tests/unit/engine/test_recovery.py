from collections.abc import Mapping
from pathlib import Path
from typing import Any

from loopctl.domain import Sha, TaskId, TaskStatus
from loopctl.engine.board import Board
from loopctl.engine.recovery import reconcile
from loopctl.manifest.toml import TomlManifest
from loopctl.records import Landed

TEXT = """
[[task]]
id = "A"
title = "a"
status = "in-progress"
worker = "command"
command = "true"
[[task]]
id = "B"
title = "b"
worker = "command"
command = "true"
"""


def settled(
    bench: Any, folder: Path, landed_by: str, last: Mapping[str, str]
) -> dict[TaskId, TaskStatus]:
    path = folder / "ACTIVE.toml"
    path.write_text(TEXT)
    board = Board(
        TomlManifest(path, "ACTIVE.toml"),
        TomlManifest(path, "ACTIVE.toml").load(),
        bench.log.emit,
    )
    landed = [Landed(Sha("c2"), TaskId(task), landed_by, "k") for task in ("A", "B")]
    reconcile(board, lambda: landed, last.get)
    return {task.id: task.status for task in TomlManifest(path, "x").load().tasks}


def test_task_in_progress_that_its_last_run_has_landed_is_done(bench: Any, tmp_path: Path) -> None:
    statuses = settled(bench, tmp_path, "r1", {"A": "r1", "B": "r1"})
    assert statuses == {"A": TaskStatus.DONE, "B": TaskStatus.TODO}


def test_landing_of_an_earlier_run_proves_nothing_for_a_later_one(
    bench: Any, tmp_path: Path
) -> None:
    assert settled(bench, tmp_path, "r1", {"A": "r2"})[TaskId("A")] is TaskStatus.TODO


def test_task_that_never_ran_is_given_back(bench: Any, tmp_path: Path) -> None:
    assert settled(bench, tmp_path, "r1", {})[TaskId("A")] is TaskStatus.TODO
