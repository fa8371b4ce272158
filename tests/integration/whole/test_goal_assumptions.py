"""What a goal leaves open: asked in one round, or assumed, recorded and overturned by an answer."""

import json
import signal
import subprocess
import sys
import tomllib
from typing import Any

import pytest

from tests.integration.whole.mind import (
    RESTING,
    UNCLEAR,
    Make,
    Mind,
    backlog,
    begun,
    manifest,
    todo,
)


def test_assumptions_stand_first_in_the_report_and_in_the_capsule(whole: Make) -> None:
    one = begun(whole, Mind(UNCLEAR, RESTING))
    ended = one.run("Write words")
    assert ended.code == 0, ended.err
    kinds = [(one["kind"], one["id"], one["best_guess"]) for one in ended.document["decisions"]]
    assert kinds == [("kickoff", "@goal.1", "word"), ("kickoff", "@goal.2", "the root")]
    assert ended.task("A")["assumptions"] != []
    folder = one.root / ".local" / "runs" / ended.document["run_id"]
    capsule = (folder / "context.md").read_text()
    assert "Which word? word" in capsule
    report = (folder / "report.md").read_text()
    assert report.index("Which word?") < report.index("Landed on")
    assert "# assumed: Which word? word" in manifest(one)


def test_another_answer_marks_what_rests_on_the_assumption_again(whole: Make) -> None:
    three = backlog(
        todo("A", assumes=[1]),
        todo("B", "A"),
        todo("C"),
        done_when=[{"check": "test -e C.txt -a -e B.txt"}],
    )
    one = begun(whole, Mind(UNCLEAR, three))
    assert one.run("Write words").code == 0
    landed = one.git("rev-parse", "loop/integration")
    ended = one.loop(
        "answer", "@goal:1", "verb", "--json", env={"LOOP_SET_SANDBOX__CONFINE": "off"}
    )
    assert ended.code == 0, ended.err
    assert (one.on_branch("A.txt"), one.on_branch("B.txt")) == ("verb\n", "verb\n")
    assert one.on_branch("C.txt") == "word\n"
    subjects = one.git(
        "log", "--format=%(trailers:key=Loop-Task,valueonly)", f"{landed.strip()}..loop/integration"
    )
    assert sorted(subjects.split()) == ["A", "B"]


@pytest.mark.slow
def test_the_answer_that_was_assumed_marks_nothing_again(whole: Make) -> None:
    one = begun(whole, Mind(UNCLEAR, RESTING))
    assert one.run("Write words").code == 0
    landed = one.git("rev-parse", "loop/integration")
    ended = one.loop(
        "answer", "@goal:1", "Word", "--json", env={"LOOP_SET_SANDBOX__CONFINE": "off"}
    )
    assert ended.code == 0, ended.err
    assert one.git("rev-parse", "loop/integration") == landed


def attended(one: Any, typed: bytes) -> tuple[int, bytes, str]:
    """Give the goal with somebody there; return the exit code and what was said."""
    words = [sys.executable, "-m", "loopctl", "Write words", "--attended", "--no-sandbox", "--json"]
    process = subprocess.Popen(
        words,
        cwd=one.root,
        env=one.env,
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
    )
    out, err = process.communicate(typed, timeout=200)
    return process.returncode, out, err.decode()


def test_everything_unclear_is_asked_in_one_round_and_what_is_skipped_is_assumed(
    whole: Make,
) -> None:
    mind = Mind(UNCLEAR, RESTING)
    one = begun(whole, mind, '[goal]\ntext = "Another"\ndone_when = [{ check = "false" }]\n')
    code, out, said = attended(one, b"replace\nverb\n\n")
    assert code == 0, said
    assert "3 questions before the work begins" in said
    assert "(1/3)" in said
    assert "Another" in said
    document = json.loads(out)
    assert [one["question"] for one in document["decisions"]] == ["In which folder?"]
    assert "Decided by the user:\n- Which word? verb" in mind.prompts[0]
    table = tomllib.loads(manifest(one))
    assert table["goal"] == {"text": "Write words", "done_when": [{"check": "test -e B.txt"}]}


@pytest.mark.slow
@pytest.mark.parametrize("typed", [b"stop\nverb\n\n", b"\n\n\n", b""])
def test_another_goal_is_kept_where_nobody_says_to_replace_it(whole: Make, typed: bytes) -> None:
    old = '[goal]\ntext = "Another"\n'
    one = begun(whole, Mind(UNCLEAR, RESTING), old)
    code, _, said = attended(one, typed)
    assert (code, manifest(one)) == (2, old), said
    assert "the manifest keeps its goal, and nothing was written" in said


@pytest.mark.slow
def test_what_was_assumed_outlives_a_kill_right_after_the_manifest_was_written(
    whole: Make,
) -> None:
    one = begun(whole, Mind(UNCLEAR, RESTING))
    killed = one.run("Write words", LOOP_FAILPOINT="manifest.after_create:1")
    assert killed.code == -signal.SIGKILL
    ended = one.run()
    assert ended.code == 0, ended.err
    kinds = [(one["kind"], one["id"], one["best_guess"]) for one in ended.document["decisions"]]
    assert kinds == [("kickoff", "@goal.1", "word"), ("kickoff", "@goal.2", "the root")]
    assert ended.task("A")["assumptions"] != []
    assert not (one.root / ".local" / "kickoff.json").exists()
    again = one.loop(
        "answer", "@goal:1", "verb", "--json", env={"LOOP_SET_SANDBOX__CONFINE": "off"}
    )
    assert again.code == 0, again.err
    assert (one.on_branch("A.txt"), one.on_branch("B.txt")) == ("verb\n", "verb\n")
