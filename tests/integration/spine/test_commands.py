"""Commands that misbehave: each ends in a clear word, a kept tree, and nothing left behind."""

import re
import resource
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest


def stopped(outcome: Any, task: str = "T1") -> Any:
    return next(event for event in outcome.of("task_stopped") if event.task == task)


def test_a_command_that_is_not_found_ends_in_a_decision(project: Any) -> None:
    project.manifest(project.task("T1", "no-such-program --fast"), project.task("T2"))
    outcome = project.run()
    assert outcome.code == 3
    assert project.status("T1") == "needs-human"
    assert project.landed() == ["T2"]
    [decision] = project.decisions()
    assert decision.kind == "environment"
    assert "no-such-program" in decision.question
    assert "not found" in decision.question


def test_a_command_that_hangs_is_ended_with_its_whole_tree_by_the_wall_budget(
    project: Any, tmp_path: Path
) -> None:
    pids = tmp_path / "pids"
    command = f"echo half > half; (sleep 1000 & echo $! $$ > {pids}; wait) & wait"
    project.manifest(project.task("T1", command, budget={"wall_s": 1}), project.task("T2"))
    outcome = project.run()
    assert outcome.code == 3
    assert project.status("T1") == "blocked"
    assert stopped(outcome).axis == "budget"
    assert [decision.kind for decision in project.decisions()] == ["budget"]
    assert not [pid for pid in pids.read_text().split() if project.is_alive(int(pid))]
    assert project.kept_file("half") == ["half"]
    assert project.landed() == ["T2"]


def test_binary_output_harms_nobody(project: Any) -> None:
    command = r"head -c 5000 /dev/urandom; printf '\033]0;title\007\0\377\376'; exit 3"
    project.manifest(project.task("T1", command))
    done = project.loop()
    assert done.code == 4
    assert not re.search(r"[\x00-\x08\x0b-\x1f\x7f-\x9f]", done.out + done.err)
    assert not re.search(r"[\x00-\x08\x0b-\x1f\x7f-\x9f]", project.loop("show", "T1").out)
    [folder] = (project.root / ".local" / "runs").iterdir()
    for name in ("report.md", "report.html", "run.json"):
        assert not re.search(rb"[\x00-\x08\x0b-\x1f\x7f]", (folder / name).read_bytes()), name


_MEASURED = """
import resource, subprocess, sys
done = subprocess.run([sys.executable, "-m", "loopctl"], capture_output=True)
print(done.returncode, resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss)
"""


def peak_kb(project: Any) -> tuple[int, int]:
    """Exit code of ``loop`` and the most memory that it, or any child of it, has held."""
    done = subprocess.run(
        [sys.executable, "-c", _MEASURED],
        cwd=project.root,
        env=project.env,
        capture_output=True,
        check=True,
        timeout=100,
    )
    code, peak = done.stdout.split()
    return int(code), int(peak)


def test_100_mb_of_output_are_not_held_in_memory(project: Any) -> None:
    flood = "head -c 100000000 /dev/zero"
    project.manifest(project.task("T1", "echo made > made"))
    code, usual = peak_kb(project)
    assert code == 0
    project.manifest(
        project.task(
            "T1", f"echo made > made; {flood}", status="todo", verify_cmd=f"{flood}; test -e made"
        )
    )
    project.git("update-ref", "-d", "refs/heads/loop/integration")
    code, peak = peak_kb(project)
    assert code == 0
    assert project.landed() == ["T1"]
    assert peak - usual < 80_000
    project.check(None)


@pytest.mark.parametrize(
    "way",
    [
        "sleep 1000 & echo $! > {place}",
        "nohup sleep 1000 > out.txt 2>&1 & echo $! > {place}",
        "setsid sh -c 'echo $$ > {place}; exec sleep 1000' & while [ ! -s {place} ]; do :; done",
        "setsid env -i sh -c 'echo $$ > {place}; exec sleep 1000' & while [ ! -s {place} ]; do :; done",
    ],
    ids=["background", "nohup", "setsid", "bare daemon"],
)
def test_what_a_command_leaves_running_is_gone_with_it(
    project: Any, tmp_path: Path, way: str
) -> None:
    place = tmp_path / "pid"
    project.manifest(project.task("T1", f"echo made > made; {way.format(place=place)}"))
    alive: list[bool] = []

    def look(event: Any) -> None:
        if event.type == "step_finished":
            alive.append(project.is_alive(int(place.read_text())))

    outcome = project.run(listeners=[look])
    assert outcome.code == 0
    assert alive == [False]
    assert project.landed() == ["T1"]


def test_a_command_that_deletes_its_own_worktree_is_told_and_may_try_again(project: Any) -> None:
    command = 'if [ -s "$LOOP_OBSERVATION" ]; then echo made > made; else rm -rf "$PWD"; fi'
    project.manifest(project.task("T1", command))
    outcome = project.run()
    assert outcome.code == 0
    assert "is gone" in outcome.of("step_finished")[0].tail
    assert project.on_branch("made") == "made"


def test_a_command_that_always_deletes_its_worktree_is_stuck(project: Any) -> None:
    project.manifest(project.task("T1", 'rm -rf "$PWD"'), project.task("T2"))
    outcome = project.run()
    assert outcome.code == 4
    assert project.status("T1") == "stuck"
    assert project.landed() == ["T2"]


@pytest.mark.parametrize(
    "way",
    [
        "rm -f .git",
        "rm -f .git; mkdir .git",
        "rm -f .git; git init -q .",
        "rm -f .git; ln -s /usr/share .git",
    ],
)
def test_a_command_that_does_away_with_git_changes_nothing_of_what_lands(
    project: Any, way: str
) -> None:
    project.manifest(
        project.task("T1", f"{way}; echo made > made"), project.task("T2", "echo 2 > 2")
    )
    outcome = project.run()
    assert outcome.code == 0, outcome
    assert project.landed() == ["T1", "T2"]
    assert project.git("show", "--stat", "--format=", "loop/integration~1").count("|") == 1


def test_a_nested_repository_is_refused_and_what_was_beside_it_is_kept(project: Any) -> None:
    command = "git init -q sub; echo in > sub/in; echo beside > beside"
    project.manifest(project.task("T1", command), project.task("T2"))
    outcome = project.run()
    assert outcome.code == 4
    assert project.status("T1") == "stuck"
    assert "sub/.git" in outcome.of("step_finished")[0].tail
    assert project.landed() == ["T2"]
    assert project.kept_file("beside") == ["beside"]
    assert project.kept_file("sub/in") == ["in"]


def test_a_nested_repository_is_mended_by_the_next_step(project: Any) -> None:
    command = (
        'mkdir sub; echo in > sub/in; grep -q "sub/.git" "$LOOP_OBSERVATION" || git init -q sub'
    )
    project.manifest(project.task("T1", command))
    assert project.run().code == 0
    assert project.on_branch("sub/in") == "in"


def test_a_command_that_says_nothing_and_fails_is_stuck_and_the_others_go_on(project: Any) -> None:
    project.manifest(project.task("T1", "echo half > half; false"), project.task("T2"))
    outcome = project.run()
    assert outcome.code == 4
    assert project.status("T1") == "stuck"
    assert project.kept_file("half") == ["half"]
    assert project.landed() == ["T2"]


def test_the_environments_limits_are_this_processs(project: Any) -> None:
    soft, _ = resource.getrlimit(resource.RLIMIT_NOFILE)
    project.manifest(project.task("T1", "ulimit -n > made"))
    assert project.run().code == 0
    assert project.on_branch("made") == str(soft)


def test_a_command_killed_from_outside_is_the_machines_fault(project: Any) -> None:
    project.manifest(project.task("T1", "echo half > half; kill -9 $$"))
    outcome = project.run()
    assert outcome.code == 3
    [decision] = project.decisions()
    assert (decision.kind, "signal 9" in decision.question) == ("environment", True)
    assert project.kept_file("half") == ["half"]


def test_messages_that_are_none_are_shown_to_the_worker_and_break_nothing(project: Any) -> None:
    command = (
        'if [ -s "$LOOP_OBSERVATION" ]; then echo made > made; exit 0; fi; '
        'printf "\\\\377{" > "$LOOP_OUTBOX/1.json"; mkdir "$LOOP_OUTBOX/2.json"; '
        'mkfifo "$LOOP_OUTBOX/3.json"; ln -s /dev/zero "$LOOP_OUTBOX/4.json"; '
        'head -c 3000000 /dev/zero > "$LOOP_OUTBOX/5.json"; exit 1'
    )
    project.manifest(project.task("T1", command))
    outcome = project.run()
    assert outcome.code == 0
    assert len(outcome.of("message_rejected")) == 5
    assert project.landed() == ["T1"]
