"""``--test-debug-fix`` and ``--evolve`` that were cut short: the same command carries them on."""

import signal
import subprocess
import sys
from collections.abc import Callable
from typing import Any

import pytest

from loopctl import bootstrap

FIX = ("--test-debug-fix", "--verify", "test -e b")
EVOLVE = ("--evolve", "--command")


@pytest.fixture
def bare(make: Callable[..., Any]) -> Any:
    """A committed project without a manifest."""
    project = make()
    project.git("rm", "-rq", "tasks")
    project.commit()
    return project


def killed(project: Any, *words: str, at: str = "next.step:1") -> None:
    """Have a command be killed at a crash point."""
    done = ended(project, *words, LOOP_FAILPOINT=at)
    assert done.returncode == -signal.SIGKILL, done.stderr


def ended(project: Any, *words: str, **env: str) -> "subprocess.CompletedProcess[str]":
    """Run a command; what a killed one has left may stay."""
    return subprocess.run(
        [sys.executable, "-m", "loopctl", *words],
        cwd=project.root,
        env={**project.env, **env},
        capture_output=True,
        text=True,
        check=False,
        timeout=100,
    )


def runs(project: Any) -> list[str]:
    return [one.id for one in bootstrap.open_project(project.root).runs()]


@pytest.mark.parametrize("at", ["next.step:1", "next.gate:1", "branch.after_unmark:1"])
def test_the_same_mending_again_carries_on_the_one_that_was_cut_short(bare: Any, at: str) -> None:
    words = (*FIX, "--command", "echo > b")
    killed(bare, *words, at=at)
    before = runs(bare)
    done = bare.loop(*words)
    assert done.code == 0, done.err
    assert runs(bare) == before
    assert bare.run_statuses() == ["complete"]
    assert len(bare.landed()) == 1


def test_another_mending_is_a_new_run(bare: Any) -> None:
    killed(bare, *FIX, "--command", "echo > b")
    done = bare.loop(*FIX, "--command", "echo other > b")
    assert done.code == 0, done.err
    assert bare.run_statuses() == ["complete", "interrupted"]
    assert bare.on_branch("b") == "other"


def test_a_mending_of_changed_files_is_a_new_run_and_takes_the_new_changes(bare: Any) -> None:
    bare.write("mine", "old\n")
    words = (*FIX, "--command", "cat mine > b")
    killed(bare, *words)
    killed(bare, *words)
    assert len(runs(bare)) == 1
    bare.write("mine", "new\n")
    done = bare.loop(*words)
    assert done.code == 0, done.err
    assert len(runs(bare)) == 2
    assert bare.on_branch("b") == "new"


def test_a_mending_on_the_same_uncommitted_changes_is_carried_on(bare: Any) -> None:
    bare.write("mine", "old\n")
    words = (*FIX, "--command", "cat mine > b")
    killed(bare, *words)
    done = bare.loop(*words)
    assert done.code == 0, done.err
    assert bare.run_statuses() == ["complete"]
    assert bare.loop("land", untouched=False).code == 0
    assert (bare.read("b"), bare.read("mine")) == ("old\n", "old\n")


@pytest.fixture
def grown(bare: Any) -> Any:
    """History has left two markers."""
    bare.write("a.py", "x = 1  # TODO one\n")
    bare.write("b.py", "y = 1  # TODO two\n")
    bare.commit("markers")
    return bare


MEND = 'case "$LOOP_STEP_GOAL" in *a.py:*) f=a ;; *) f=b ;; esac; sed -i "s/ *#.*//" $f.py'


def test_the_same_look_at_history_again_carries_on_and_does_no_task_twice(grown: Any) -> None:
    killed(grown, *EVOLVE, MEND, at="next.goal:1")
    done = grown.loop(*EVOLVE, MEND)
    assert done.code == 0, done.err
    assert grown.run_statuses() == ["complete"]
    assert len(grown.landed()) == 2


@pytest.mark.parametrize(
    "words",
    [
        (*EVOLVE, MEND, "--commits", "5"),
        (*EVOLVE, f"{MEND} "),
        (*EVOLVE, MEND, "--verify", "true"),
    ],
)
def test_another_look_at_history_is_a_new_run(grown: Any, words: tuple[str, ...]) -> None:
    killed(grown, *EVOLVE, MEND)
    assert grown.loop(*words).code == 0
    assert grown.run_statuses() == ["complete", "interrupted"]


def test_a_dry_run_carries_nothing_on(grown: Any) -> None:
    killed(grown, *EVOLVE, MEND)
    assert "2 tasks in recent history" in grown.loop("--evolve", "--dry-run").out
    assert grown.run_statuses() == ["interrupted"]


def test_a_plain_loop_says_in_one_line_how_the_mending_goes_on(bare: Any) -> None:
    killed(bare, *FIX, "--command", "echo > b")
    [run] = runs(bare)
    said = f"loop: run {run} (--test-debug-fix) was cut short; `"
    alone = ended(bare)
    assert alone.returncode == 2
    assert said in alone.stderr
    bare.manifest(bare.task("T1"))
    driven = bare.loop(untouched=False)
    assert driven.code == 0, driven.err
    assert said in driven.err
    assert bare.status("T1") == "done"
    # It is said once: what was driven since is the newest run.
    assert "cut short" not in bare.loop(untouched=False).err
    resumed = bare.loop("resume", run)
    assert resumed.code == 0, resumed.err
    assert bare.on_branch("b") == ""


def test_a_plain_loop_drives_the_manifest_that_was_cut_short_and_says_nothing_of_it(
    make: Callable[..., Any],
) -> None:
    project = make()
    killed(project)
    done = project.loop()
    assert done.code == 0, done.err
    assert "was cut short" not in done.err
    assert project.run_statuses() == ["complete"]


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (
            ("--test-debug-fix", "--verify", "test -e b", "--command", "true"),
            "loop --test-debug-fix --verify 'test -e b' --command true",
        ),
        (
            ("--evolve", "--commits", "7", "--command", "true"),
            "loop --evolve --commits 7 --command true",
        ),
    ],
)
def test_the_report_of_tasks_that_got_stuck_names_a_command_that_works(
    grown: Any, words: tuple[str, ...], said: str
) -> None:
    done = grown.loop(*words)
    assert done.code == 4, done.err
    [line] = [line for line in done.out.splitlines() if "begin anew" in line]
    assert said.removeprefix("loop") in line
    assert "try " not in done.out
    assert "name it" not in done.out
