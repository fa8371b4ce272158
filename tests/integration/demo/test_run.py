"""The demo as a user runs it: every promise that its manifest makes, on the real engine."""

from collections.abc import Callable, Sequence
from pathlib import Path

import pytest

from loopctl import bootstrap
from loopctl.domain import RunOptions, Scope, TaskId, TaskStatus
from loopctl.events import AnyEvent, CandidateEnded, ForkResolved, GateFinished, TaskStopped
from loopctl.given import Answer

Git = Callable[[Sequence[str]], str]


def statuses(project: bootstrap.Project) -> dict[str, list[str]]:
    """Return the ids of the manifest's tasks by their status."""
    found: dict[str, list[str]] = {}
    for task in project.manifest.load().tasks:
        found.setdefault(task.status, []).append(task.id)
    return found


@pytest.fixture(scope="module")
def first(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, int, list[AnyEvent]]:
    """Return the demo's folder after its first run, the exit code and the events."""
    folder = bootstrap.create_demo(tmp_path_factory.mktemp("demo") / "tally")
    events: list[AnyEvent] = []
    ended = bootstrap.open_project(folder).run(RunOptions(), listeners=[events.append])
    return folder, ended.exit_code, events


def test_first_run_ends_with_a_decision(first: tuple[Path, int, list[AnyEvent]]) -> None:
    folder, exit_code, _ = first
    project = bootstrap.open_project(folder)
    assert exit_code == 3
    assert statuses(project) == {
        TaskStatus.DONE: ["T1", "T2", "T3", "T4", "T8", "T9", "T10"],
        TaskStatus.NEEDS_HUMAN: ["T5"],
        TaskStatus.TODO: ["T6"],
        TaskStatus.STUCK: ["T7"],
    }
    [decision] = project.decisions()
    assert (decision.task, decision.best_guess) == ("T5", "day first")


def test_each_task_ends_as_its_comment_says(first: tuple[Path, int, list[AnyEvent]]) -> None:
    _, _, events = first
    gates = [(e.task, e.checks[-1]) for e in events if isinstance(e, GateFinished)]
    assert [check.verdict for task, check in gates if task == "T2"] == ["fail", "pass"]
    assert {task for task, check in gates if check.vacuous} == {"T10"}
    [fork] = [e for e in events if isinstance(e, ForkResolved)]
    assert (fork.task, fork.winner) == ("T4", "last-mark")
    sizes = {e.name: e.changed_lines or 0 for e in events if isinstance(e, CandidateEnded)}
    assert sizes["drop-commas"] < sizes["last-mark"]
    [stuck] = [e for e in events if isinstance(e, TaskStopped) and e.task == "T7"]
    assert (stuck.axis, stuck.reason, stuck.steps) == ("stall", "no_progress", 3)


def test_files_of_the_run_are_those_that_the_docs_list(
    first: tuple[Path, int, list[AnyEvent]],
) -> None:
    folder, _, _ = first
    page = (Path(__file__).parents[3] / "docs/reference/run-files.md").read_text(encoding="utf-8")
    local = folder / ".local"
    [run] = (local / "runs").iterdir()
    found = {f"{path.name}/" if path.is_dir() else path.name for path in local.iterdir()}
    found |= {path.name for path in run.iterdir()}
    assert {"git/", "loop.db", "events.jsonl", "context.md"} <= found
    assert [name for name in sorted(found) if f"`{name}" not in page] == []


def test_answer_then_mending_the_stuck_task_meets_the_goal_and_lands(
    first: tuple[Path, int, list[AnyEvent]], git_in: Callable[[Path], Git]
) -> None:
    folder, _, _ = first
    git = git_in(folder)
    project = bootstrap.open_project(folder)
    head = git(["rev-parse", "HEAD"])
    [decision] = project.decisions()
    ended = project.answer([Answer(decision.id, "month first")], listeners=())
    assert ended.exit_code == 4
    assert statuses(project)[TaskStatus.STUCK] == ["T7"]
    assert len(statuses(project)[TaskStatus.DONE]) == 9

    manifest = folder / "tasks/ACTIVE.toml"
    text = manifest.read_text()
    assert "exc)'\"" in text
    manifest.write_text(text.replace("exc)'\"", "exc)' --broad\""))
    ended = project.run(RunOptions(scope=Scope(ids=(TaskId("T7"),))), listeners=())
    assert ended.exit_code == 0
    assert project.run(RunOptions(), listeners=()).exit_code == 0
    assert git(["rev-parse", "HEAD"]) == head

    log = git(["log", "--format=%s", "main..loop/integration"]).splitlines()
    assert sorted(line.partition(":")[0] for line in log) == sorted(f"T{n}" for n in range(1, 11))
    assert project.land().commits == 10
    assert git(["rev-parse", "HEAD"]) == git(["rev-parse", "loop/integration"])
    assert "The month comes first" in (folder / "README.md").read_text()
    assert git(["status", "--porcelain"]).split() == ["M", "tasks/ACTIVE.toml"]
