"""Tasks of the model worker from the manifest to the branch, against a real wire."""

import json
import os
import subprocess
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from loopctl.testing import ScriptedCall, ScriptedReply, wrong_key

Make = Callable[..., Any]


def reply(*calls: tuple[str, dict[str, Any]]) -> ScriptedReply:
    return ScriptedReply(calls=tuple(ScriptedCall(name, given) for name, given in calls))


def write(task: str, text: str = "word\n") -> tuple[str, dict[str, Any]]:
    return ("write_file", {"path": f"{task}.txt", "content": text})


DONE = ("todo_done", {"summary": "written"})
PLAN = ("plan", {"todos": ["write the word", "look at it"]})


def test_a_task_is_worked_on_by_a_model_and_lands(whole: Make) -> None:
    one = whole([reply(write("T1"), DONE)])
    ended = one.run()
    assert (ended.code, ended.err) == (0, ended.err)
    assert one.on_branch("T1.txt") == "word\n"
    task = ended.task("T1")
    assert (task["status"], task["steps"], task["worker"]) == ("done", 1, "graph")
    assert task["usage"]["usd"] > 0
    assert [call.key for call in one.model.chats] == ["sk-never-to-be-seen-4f1c9d"]


def test_an_autonomous_task_is_planned_first_and_the_gate_speaks_back(whole: Make) -> None:
    one = whole(
        [
            reply(PLAN),
            reply(write("T1", "nothing\n"), DONE),
            reply(DONE),
            reply(write("T1"), DONE),
        ]
    )
    one.manifest("T1", mode="autonomous")
    one.commit()
    ended = one.run()
    assert ended.code == 0, ended.err
    assert ended.task("T1")["steps"] == 3
    last = one.model.chats[-1].messages
    assert any("grep -q word T1.txt" in str(message["content"]) for message in last)


WITHOUT_LANDLOCK = """
import runpy
from loopctl.sandbox.confine import landlock
landlock.abi = lambda: 0
runpy.run_module("loopctl", run_name="__main__", alter_sys=True)
"""


def test_nobody_there_and_no_confinement_is_refused_before_anything_is_asked(whole: Make) -> None:
    one = whole([reply(write("T1"), DONE)])
    broken = one.root.parent / "bin" / "bwrap"
    broken.parent.mkdir()
    broken.write_text("#!/bin/sh\necho it cannot >&2\nexit 1\n")
    broken.chmod(0o700)
    path = f"{broken.parent}{os.pathsep}{one.env['PATH']}"
    ended = one.loop("--json", env={"PATH": path}, start=("-c", WITHOUT_LANDLOCK))
    assert ended.code == 2
    assert "bwrap does not hold: it cannot" in ended.err
    assert "--no-sandbox" in ended.err
    assert one.model.chats == ()


def test_nobody_there_is_fine_where_commands_are_confined(whole: Make) -> None:
    one = whole([reply(write("T1"), DONE)])
    ended = one.loop("--json")
    assert ended.code == 0, ended.err
    assert "word" in one.on_branch("T1.txt")
    assert any("confined (bubblewrap" in text for text in json.loads(ended.out)["notices"])


@pytest.mark.parametrize(
    ("cap", "code", "status"),
    [
        ("task_tokens", 3, "blocked"),
        ("run_usd", 5, "todo"),
    ],
)
def test_no_request_leaves_whose_worst_case_passes_a_cap(
    whole: Make, cap: str, code: int, status: str
) -> None:
    one = whole([reply(write("T1"), DONE)])
    ended = one.run(**{f"LOOP_SET_BUDGET__{cap.upper()}": "0.000001" if "usd" in cap else "99"})
    assert (ended.code, ended.task("T1")["status"]) == (code, status)
    assert one.model.chats == ()


def test_a_cap_of_zero_lets_nothing_leave_and_stops_no_other_task(whole: Make) -> None:
    one = whole([reply(write("T3"), DONE)])
    one.manifest("T1", "T2", "T3")
    path = one.root / "tasks" / "ACTIVE.toml"
    text = path.read_text()
    for task, cap in (("T1", "usd"), ("T2", "tokens")):
        text = text.replace(f'id = "{task}"', f'id = "{task}"\nbudget = {{ {cap} = 0 }}')
    path.write_text(text)
    one.commit()
    ended = one.run()
    assert ended.code == 3, ended.err
    assert [ended.task(name)["status"] for name in ("T1", "T2", "T3")] == [
        "blocked",
        "blocked",
        "done",
    ]
    asked = {one["task"]: (one["kind"], *one["options"]) for one in ended.document["decisions"]}
    assert asked.keys() == {"T1", "T2"}
    assert {kind for kind, *_ in asked.values()} == {"budget"}
    assert len(one.model.chats) == 1


def test_an_unknown_price_under_a_cap_in_dollars_is_asked_about(whole: Make) -> None:
    one = whole([reply(write("T1"), DONE)])
    one.settings(price=False)
    one.commit()
    # A cap that is the default's amount was set all the same.
    ended = one.run("--max-usd", "10")
    assert ended.code == 3
    assert "input_usd_per_mtok" in ended.document["decisions"][0]["question"]
    assert one.model.chats == ()


def test_a_call_that_is_asked_about_waits_and_goes_on_in_another_process(whole: Make) -> None:
    one = whole(
        [
            reply(write("T1"), ("bash", {"command": "mv README MOVED"}), DONE),
        ]
    )
    one.settings('[policy]\napprove = ["bash:mv *"]\n')
    one.commit()
    ended = one.run()
    assert ended.code == 3
    (decision,) = ended.document["decisions"]
    assert (decision["kind"], decision["task"]) == ("approval", "T1")
    assert "mv README MOVED" in decision["question"]
    answered = one.loop("answer", "T1", "--approve", "--json")
    assert answered.code == 0, answered.err
    assert (one.on_branch("MOVED"), one.on_branch("T1.txt")) == ("words\n", "word\n")
    assert len(one.model.chats) == 1
    assert everywhere(one.root, b"sk-never-to-be-seen-4f1c9d") == []


def everywhere(root: Path, secret: bytes) -> list[str]:
    """Return the files below that hold a secret, git's objects unpacked."""
    found = [
        str(path) for path in root.rglob("*") if path.is_file() and secret in path.read_bytes()
    ]
    for folder in (root / ".git", root / ".local" / "git"):
        said = subprocess.run(
            ["git", f"--git-dir={folder}", "cat-file", "--batch-all-objects", "--batch"],
            capture_output=True,
            check=True,
            timeout=60,
        )
        assert b"word" in said.stdout
        found += [str(folder)] * (secret in said.stdout)
    return found


def test_a_model_that_cannot_be_reached_is_a_decision_that_says_what_to_do(whole: Make) -> None:
    one = whole([wrong_key()])
    ended = one.run()
    assert ended.code == 3
    (decision,) = ended.document["decisions"]
    assert decision["kind"] == "environment"
    assert "SCRIPTED_KEY" in decision["question"]
