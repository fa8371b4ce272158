"""What workers assume of an open decision, and answers that say otherwise; and the capsule."""

import json
import signal
import subprocess
import sys
import tomllib
from typing import Any

import pytest

ASKS = (
    'if [ -n "$LOOP_ANSWER" ]; then echo "$LOOP_ANSWER" >> Q; exit; fi; echo kept > Q; '
    'loop defer --reason external --decision-needed "which word?" --best-guess word'
)
RESTS = (
    'if [ -n "$LOOP_ANSWER" ]; then echo "$LOOP_ANSWER" > {0}; exit; fi; '
    'echo \'{{"type": "assumption", "text": "it is word", "decision": "Q.1"}}\' '
    '> "$LOOP_OUTBOX/1.json"; echo word > {0}'
)


def command(project: Any, *words: str, **env: str) -> "subprocess.CompletedProcess[str]":
    return subprocess.run(
        [sys.executable, "-m", "loopctl", *words],
        cwd=project.root,
        env={**project.env, **env},
        capture_output=True,
        text=True,
        check=False,
        timeout=100,
    )


@pytest.fixture
def resting(project: Any) -> Any:
    """One task asks, one rests on the guess, one is built on that one, one on nothing."""
    on_rest = project.task("T3", 'echo "again: $LOOP_ANSWER" >> T3').replace(
        'id = "T3"', 'id = "T3"\ndeps = ["T2"]'
    )
    project.manifest(
        project.task("Q", ASKS),
        project.task("T2", RESTS.format("T2")),
        on_rest,
        project.task("T4", "echo other > T4"),
    )
    assert project.run().code == 3
    assert sorted(project.landed()) == ["T2", "T3", "T4"]
    return project


def capsule(project: Any) -> dict[str, Any]:
    text: str = command(project, "capsule").stdout
    return tomllib.loads(text.split("```toml\n")[1].split("\n```\n", maxsplit=1)[0])


def test_a_contradicted_assumption_reaches_what_rests_on_it_and_nothing_else(
    resting: Any,
) -> None:
    done = command(resting, "answer", "Q", "verb")
    assert done.returncode == 0, done.stderr
    assert sorted(resting.landed()) == ["Q", "T2", "T2", "T3", "T3", "T4"]
    assert resting.on_branch("Q") == "kept\nverb"
    assert resting.on_branch("T2") == "which word? verb"
    assert "built on 'word'" in done.stderr + done.stdout
    assert "the capsule says what was next: wait for answers: Q.1" in done.stderr + done.stdout
    assert capsule(resting)["current_step"] == ""
    [deferred] = capsule(resting)["deferred_tasks"]
    assert deferred == {
        "task_id": "Q",
        "question": "which word?",
        "best_guess": "word",
        "answer": "verb",
    }


def test_the_answer_that_was_assumed_runs_the_deferred_task_alone(resting: Any) -> None:
    assert command(resting, "answer", "Q", "Word").returncode == 0
    assert sorted(resting.landed()) == ["Q", "T2", "T3", "T4"]
    assert resting.on_branch("Q") == "kept\nWord"


def test_a_second_answer_is_refused_and_shows_the_first(resting: Any) -> None:
    assert command(resting, "answer", "Q", "word").returncode == 0
    second = command(resting, "answer", "Q", "verb")
    assert second.returncode == 2
    assert "Q.1 was answered already" in second.stderr
    assert "word" in second.stderr


def test_a_file_of_answers_makes_the_round_trip(resting: Any) -> None:
    template = command(resting, "answer", "--template")
    assert template.returncode == 0
    path = resting.root.parent / "answers.toml"
    path.write_text(template.stdout.replace('answer = ""', 'answer = "verb"'))
    assert command(resting, "answer", "--file", str(path)).returncode == 0
    assert resting.on_branch("Q") == "kept\nverb"
    assert command(resting, "answer", "--template").stdout.count("[[answer]]") == 0


@pytest.mark.parametrize(
    ("point", "said"),
    [
        ("next.step:1", "T1, step 1: "),
        ("next.gate:1", "T1, gate on tree "),
        ("next.goal:1", "T1 has landed"),
    ],
)
def test_the_next_action_is_written_before_it_is_begun_and_read_again(
    project: Any, point: str, said: str
) -> None:
    project.manifest(project.task("T1", "echo x > T1"), project.task("T2", "echo x > T2"))
    killed = command(project, "run", LOOP_FAILPOINT=point)
    assert killed.returncode == -signal.SIGKILL
    assert capsule(project)["current_step"].startswith(said)
    again = command(project, "run")
    assert again.returncode == 0, again.stderr
    assert f"the capsule says what was next: {said}" in again.stderr + again.stdout
    assert sorted(project.landed()) == ["T1", "T2"]


def test_an_export_has_the_same_ids_again_and_after_the_answer(resting: Any) -> None:
    first = command(resting, "capsule", "--export")
    assert first.returncode == 0
    assert command(resting, "capsule", "--export").stdout == first.stdout
    before = {one["id"]: one for one in map(json.loads, first.stdout.splitlines())}
    assert {one["op"] for one in before.values()} == {"upsert"}
    assert command(resting, "answer", "Q", "word").returncode == 0
    after = {
        one["id"]: one
        for one in map(json.loads, command(resting, "capsule", "--export").stdout.splitlines())
    }
    assert after.keys() == before.keys()
    [deferred] = [one for one in after.values() if one["kind"] == "deferred_task"]
    assert (deferred["answer"], before[deferred["id"]]["answer"]) == ("word", None)


def test_a_capsule_of_no_run_says_so(project: Any) -> None:
    done = command(project, "capsule")
    assert (done.returncode, "there is no run yet" in done.stderr) == (2, True)
