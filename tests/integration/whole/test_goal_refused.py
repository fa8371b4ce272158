"""Words that are no goal and replies that make no tasks: said clearly, nothing half-written."""

import signal
import subprocess
import sys
from typing import Any

import pytest

from loopctl.testing import Silence
from tests.integration.whole.mind import CLEAR, TWO, Make, Mind, backlog, begun, manifest, todo


@pytest.mark.parametrize(
    ("bad", "why"),
    [
        ("I would rather talk about it.", "no usable answer"),
        pytest.param({"tasks": []}, "no usable answer", marks=pytest.mark.slow),
        (backlog(todo("A", "B"), todo("B", "A")), "deps form a cycle: A -> B -> A"),
        pytest.param(backlog(todo("A"), todo("A")), '"A" is used twice', marks=pytest.mark.slow),
        pytest.param(backlog(todo("../../etc/x")), "is no id", marks=pytest.mark.slow),
        pytest.param(
            backlog({**todo("A"), "may_edit": ["../x"]}), "no usable answer", marks=pytest.mark.slow
        ),
        (backlog(todo("A", verify_cmd="true")), "passes before any work"),
        (backlog(todo("A"), done_when=[{"check": "no-such-program"}]), "cannot start here"),
        (backlog(todo("A", verify_cmd="no-such-program --check")), "cannot start here"),
        pytest.param(
            backlog(todo("A"), done_when=[{"check": "true"}]),
            "every criterion is met before",
            marks=pytest.mark.slow,
        ),
        pytest.param(
            backlog(todo("A", assumes=[1])), "there are 0 assumptions", marks=pytest.mark.slow
        ),
    ],
)
def test_a_backlog_that_cannot_be_used_is_an_error_after_a_few_tries(
    whole: Make, bad: Any, why: str
) -> None:
    one = begun(whole, Mind(CLEAR, bad))
    ended = one.run("Write words")
    assert ended.code == 2
    assert why in ended.err
    assert not (one.root / "tasks" / "ACTIVE.toml").exists()
    assert len(one.model.chats) <= 10
    assert one.git("branch", "--list", "loop/integration") == ""
    again = one.loop("resume")
    assert (again.code, "no run has anything left" in again.err or "no such file" in again.err) == (
        2,
        True,
    )


def test_a_backlog_that_was_sent_back_is_mended(whole: Make) -> None:
    mind = Mind(CLEAR, backlog(todo("A", verify_cmd="true")), TWO)
    one = begun(whole, mind)
    assert one.run("Write words").code == 0
    assert "passes before any work" in mind.prompts[1]


@pytest.mark.parametrize("words", [["--goal", "Write words"], ["Write words", "--unattended"]])
def test_another_goal_is_kept_where_nobody_is_there(whole: Make, words: list[str]) -> None:
    old = '[goal]\ntext = "Another"\n'
    one = begun(whole, Mind(), old)
    ended = one.run(*words)
    assert (ended.code, manifest(one)) == (2, old)
    assert "the manifest has another goal (Another)" in ended.err
    assert one.model.chats == ()


def test_a_broken_manifest_is_shown_and_nothing_is_asked(whole: Make) -> None:
    one = begun(whole, Mind(), '[goal]\ntxt = "x"\n')
    ended = one.run("Write words")
    assert ended.code == 2
    assert "tasks/ACTIVE.toml:2" in ended.err
    assert one.model.chats == ()


@pytest.mark.parametrize(
    ("words", "why"),
    [
        (["  "], "the goal is empty"),
        (["--goal", ""], "the goal is empty"),
        (["x " * 50_000], "the goal has 100000 bytes"),
        (["--", "-x"], "for a goal: loop --goal=-x"),
        (["--", "status"], "for a goal: loop --goal=status"),
    ],
)
def test_words_that_are_no_goal_say_what_to_do(whole: Make, words: list[str], why: str) -> None:
    one = begun(whole, Mind())
    ended = one.loop("--no-sandbox", *words)
    assert ended.code == 2
    assert why in ended.err
    assert one.model.chats == ()


@pytest.mark.parametrize(
    "judged",
    [
        "Well, it depends.",
        *(pytest.param(one, marks=pytest.mark.slow) for one in ({"ambiguous": "perhaps"}, "{")),
    ],
)
def test_a_judge_of_the_goal_that_talks_nonsense_leaves_nothing_behind(
    whole: Make, judged: Any
) -> None:
    one = begun(whole, Mind(judged))
    ended = one.run("Write words")
    assert ended.code == 2
    assert "no usable answer" in ended.err
    assert not (one.root / "tasks" / "ACTIVE.toml").exists()
    assert not (one.root / ".local" / "kickoff.json").exists()
    for words in (["status"], ["runs"], ["report"], ["capsule"], ["audit", "verify"]):
        shown = one.loop(*words)
        assert "no run yet" in f"{shown.out}{shown.err}".lower(), words


def test_a_kickoff_under_way_is_seen_and_one_that_is_stopped_has_begun_no_run(whole: Make) -> None:
    one = begun(whole, lambda _: Silence())
    process = subprocess.Popen(
        [sys.executable, "-m", "loopctl", "Write words", "--no-sandbox"],
        cwd=one.root,
        env=one.env,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
    )
    try:
        one.model.wait_for(1)
        assert f"Process {process.pid} is about to begin a run." in one.loop("status").out
        watched = one.loop("watch")
        assert (watched.code, "is about to begin a run" in watched.err) == (2, True)
        process.send_signal(signal.SIGINT)
        _, err = process.communicate(timeout=100)
    finally:
        if process.poll() is None:
            process.kill()
            process.communicate()
    assert process.returncode == 130, err
    assert "No run yet" in one.loop("status").out
    assert not (one.root / "tasks" / "ACTIVE.toml").exists()
