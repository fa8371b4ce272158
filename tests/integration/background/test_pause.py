import json
from collections.abc import Callable
from typing import Any

Wait = Callable[[Callable[[], object], str], None]
Gone = Callable[[int], bool]


def statuses(bench: Any) -> list[str]:
    text = (bench.root / "tasks" / "ACTIVE.toml").read_text()
    return [line.split('"')[1] for line in text.splitlines() if line.startswith("status")]


def test_pause_lets_the_step_end_and_issues_no_other(bench: Any, wait: Wait, gone: Gone) -> None:
    told = bench.background()
    wait(lambda: bench.has_begun("A"), "the first step")
    done = bench.loop("pause", "--json")
    assert json.loads(done.stdout) == {"schema": 1, "run_id": told["run_id"], "pid": told["pid"]}
    bench.open_gates("A", "B")
    wait(lambda: gone(told["pid"]), "the end of the run")
    *_, last = bench.events(told["run_id"])
    assert (last["type"], last["status"], last["exit_code"]) == ("run_ended", "interrupted", 130)
    assert statuses(bench) == ["done"]
    assert not bench.has_begun("B")
    assert bench.loop("audit", "verify").returncode == 0

    resumed = bench.loop("resume")
    assert resumed.returncode == 0
    assert statuses(bench) == ["done", "done"]
    assert not (bench.folder(told["run_id"]) / "pause").exists()
    assert [run["status"] for run in bench.runs()] == ["complete"]


def test_pause_between_the_steps_of_a_task_gives_its_status_back(
    bench: Any, wait: Wait, gone: Gone
) -> None:
    bench.manifest("A")
    path = bench.root / "tasks" / "ACTIVE.toml"
    # The first step is not good enough: without a pause a second one would follow.
    text = path.read_text().replace("echo x > A.txt", "echo x >> A.txt")
    path.write_text(text.replace("test -e A.txt", "test $(wc -l < A.txt) -ge 2"))
    told = bench.background()
    wait(lambda: bench.has_begun("A"), "the first step")
    assert bench.loop("pause", told["run_id"]).returncode == 0
    bench.open_gates("A")
    wait(lambda: gone(told["pid"]), "the end of the run")
    types = [event["type"] for event in bench.events(told["run_id"])]
    assert types.count("step_started") == types.count("step_finished") == 1
    assert statuses(bench) == ["todo"]
    assert not any((bench.root / ".local" / "worktrees").iterdir())
    assert bench.loop("resume").returncode == 0
    iterations = [
        event["iteration"]
        for event in bench.events(told["run_id"])
        if event["type"] == "step_started"
    ]
    assert iterations == [1, 2]


def test_a_pause_that_comes_too_late_changes_nothing(bench: Any, wait: Wait, gone: Gone) -> None:
    bench.manifest("A")
    told = bench.background()
    wait(lambda: bench.has_begun("A"), "the first step")
    bench.loop("pause")
    bench.open_gates("A")
    wait(lambda: gone(told["pid"]), "the end of the run")
    assert [run["status"] for run in bench.runs()] == ["complete"]


def test_nothing_is_paused_where_nothing_is_under_way(bench: Any) -> None:
    done = bench.loop("pause")
    assert done.returncode == 2
    assert "no run is under way" in done.stderr
    bench.manifest("A")
    bench.open_gates("A")
    bench.loop()
    first = bench.runs()[0]["run_id"]
    bench.manifest("B")
    told = bench.background()
    done = bench.loop("pause", first)
    assert done.returncode == 2
    assert f"run {first} is not under way, run {told['run_id']} is" in done.stderr
    assert not (bench.folder(first) / "pause").exists()
    assert not (bench.folder(told["run_id"]) / "pause").exists()
