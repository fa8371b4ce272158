"""Steps in processes of their own: nothing is kept between them, nothing is done twice."""

import importlib.util
import json
import subprocess
import sys
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

CHILD = Path(__file__).with_name("child.py")
ONCE = {"write_a": 1, "push_b": 1, "write_c": 1}
BATCH = [["write_a", {"n": 0}], ["push_b", {"n": 1}], ["write_c", {"n": 2}]]
DONE = [["todo_done", {"summary": "done"}]]

Take = Callable[..., dict[str, Any]]


@pytest.fixture
def take(tmp_path: Path) -> Take:
    """Take one step in a new process, which has nothing but its job and the folder of the door."""

    def run(**job: Any) -> dict[str, Any]:
        found = subprocess.run(
            [sys.executable, str(CHILD), str(tmp_path)],
            input=json.dumps({"has_ledger": True, **job}),
            capture_output=True,
            text=True,
            check=False,
            timeout=120,
        )
        assert found.returncode == 0, found.stderr
        result: dict[str, Any] = json.loads(found.stdout)
        return result

    return run


def effects(folder: Path) -> dict[str, int]:
    return dict(Counter((folder / "effects").read_text().split()))


def going_on(before: dict[str, Any]) -> dict[str, Any]:
    return {"blob": before["blob"], "call_id": before["call_id"]}


def test_each_effect_happens_once_though_the_process_forgot_and_the_resume_came_twice(
    take: Take, tmp_path: Path
) -> None:
    first = take(script=[BATCH])
    assert effects(tmp_path) == {"write_a": 1}
    once = take(script=[DONE], **going_on(first))
    assert effects(tmp_path) == ONCE
    twice = take(script=[DONE], **going_on(first))

    assert effects(tmp_path) == ONCE
    assert once["events"] == twice["events"]
    assert once["events"][-1].startswith("WorkerProgress(")


def test_saved_siblings_are_not_run_again_also_without_a_ledger(take: Take, tmp_path: Path) -> None:
    first = take(script=[BATCH], has_ledger=False)
    take(script=[DONE], has_ledger=False, **going_on(first))

    assert effects(tmp_path) == ONCE


def test_without_a_ledger_a_second_resume_would_repeat_effects(take: Take, tmp_path: Path) -> None:
    first = take(script=[BATCH], has_ledger=False)
    for _ in range(2):
        take(script=[DONE], has_ledger=False, **going_on(first))

    assert effects(tmp_path) == {"write_a": 1, "push_b": 2, "write_c": 2}


def test_one_node_with_a_loop_and_an_interrupt_inside_would_run_a_sibling_twice(
    take: Take, tmp_path: Path
) -> None:
    first = take(is_naive=True, has_ledger=False)
    take(is_naive=True, has_ledger=False, blob=first["blob"])

    assert effects(tmp_path) == ONCE | {"write_a": 2}


def test_step_in_a_fresh_process_comes_to_the_same(take: Take, tmp_path: Path) -> None:
    plan = [
        {
            "iteration": number,
            "step_goal": f"part {number}",
            "script": [[["write_a", {"n": number}]], DONE],
            "turns": [[past, f"turn {past}"] for past in range(1, number)],
        }
        for number in range(1, 4)
    ]
    fresh = [take(**step) for step in plan]
    (tmp_path / "here").mkdir()
    here = [child().taken({"has_ledger": True, **step}, tmp_path / "here") for step in plan]

    assert fresh == here
    assert effects(tmp_path) == {"write_a": 3}


def child() -> Any:
    found = importlib.util.spec_from_file_location("worker_graph_child", CHILD)
    assert found is not None
    assert found.loader is not None
    module = importlib.util.module_from_spec(found)
    found.loader.exec_module(module)
    return module
