"""Checks, set-ups and sandboxes that fail: what cannot be judged never lands, and is asked about."""

from pathlib import Path
from typing import Any


def reasons(outcome: Any, task: str = "T1") -> list[str]:
    return [e.checks[-1].reason for e in outcome.of("gate_finished") if e.task == task]


def test_a_verify_that_hangs_is_ended_with_its_tree_and_asked_about(
    project: Any, tmp_path: Path
) -> None:
    pids = tmp_path / "pids"
    project.settings("[gate]\ntimeout_s = 1\n")
    hangs = f"(sleep 1000 & echo $! >> {pids}; wait); true"
    project.manifest(project.task("T1", verify_cmd=hangs), project.task("T2"))
    project.commit()
    outcome = project.run()
    assert outcome.code == 3
    assert project.status("T1") == "needs-human"
    [decision] = project.decisions()
    assert decision.kind == "environment"
    assert "time limit of 1 s" in decision.question
    assert not [pid for pid in pids.read_text().split() if project.is_alive(int(pid))]
    assert project.kept_file("made", among="T1") == ["made"]
    assert project.landed() == ["T2"]


def test_a_verify_that_is_not_found_is_asked_about(project: Any) -> None:
    project.manifest(project.task("T1", verify_cmd="no-such-checker"), project.task("T2"))
    outcome = project.run()
    assert outcome.code == 3
    [decision] = project.decisions()
    assert (decision.kind, "no-such-checker" in decision.question) == ("environment", True)
    assert project.landed() == ["T2"]


def test_a_verify_that_fails_keeps_the_work(project: Any) -> None:
    project.manifest(project.task("T1", verify_cmd="head -c 300000 /dev/urandom; false"))
    done = project.loop()
    assert done.code == 4
    assert len(done.out) < 20_000
    assert project.kept_file("made") == ["made"]
    assert project.landed() == []


def test_with_nothing_to_verify_by_a_human_is_asked_and_the_answer_is_the_command(
    project: Any,
) -> None:
    project.manifest(project.task("T1", verify_cmd=None))
    outcome = project.run()
    assert outcome.code == 3
    assert project.status("T1") == "needs-human"
    [decision] = project.decisions()
    assert decision.kind == "verify"
    done = project.loop("answer", "T1", "test -s made")
    assert done.code == 0, done.err
    assert project.landed() == ["T1"]
    assert project.status("T1") == "done"


def test_an_answered_verify_command_that_fails_does_not_land(project: Any) -> None:
    project.manifest(project.task("T1", verify_cmd=None))
    assert project.run().code == 3
    done = project.loop("answer", "T1", "test -e nothing")
    assert done.code == 4, done.err
    assert project.landed() == []
    assert project.status("T1") == "stuck"


def test_a_set_up_that_fails_is_asked_about_once_mended_it_goes_on(
    project: Any, tmp_path: Path
) -> None:
    place = tmp_path / "ready"
    project.settings(f'[sandbox]\nsetup_cmd = "echo setting up; test -e {place}"\n')
    project.commit()
    outcome = project.run()
    assert outcome.code == 3
    [decision] = project.decisions()
    assert decision.kind == "environment"
    assert "setup_cmd" in decision.question
    assert project.landed() == []
    place.touch()
    assert project.answer(decision.id, "installed").code == 0
    assert project.landed() == ["T1"]


def test_a_set_up_that_fails_only_before_the_gate_is_the_environments_fault(project: Any) -> None:
    project.settings('[sandbox]\nsetup_cmd = "test ! -e made"\n')
    project.commit()
    outcome = project.run()
    assert outcome.code == 3
    assert "setup_cmd" in project.decisions()[0].question
    assert project.kept_file("made") == ["made"]
    assert project.landed() == []


def test_a_sandbox_that_cannot_be_made_is_an_error_of_its_task_alone(project: Any) -> None:
    project.manifest(
        project.task("T1", "echo 1 > one", priority=2),
        project.task("T2", "echo 2 > two"),
        project.task("T3", "echo 3 > three", deps=["T1"]),
    )
    local = project.root / ".local"

    def obstruct(event: Any) -> None:
        place = local / "git" / "worktrees"
        if event.type == "task_claimed" and event.task == "T1":
            place.parent.joinpath("worktrees").write_text("in the way")
        elif event.type == "task_stopped" and event.task == "T1":
            place.unlink()

    outcome = project.run(listeners=[obstruct])
    assert outcome.code == 4, outcome
    assert project.status("T1") == "blocked"
    assert "could not be made" in outcome.notices
    assert project.landed() == ["T2"]
    assert project.status("T3") == "todo"
    assert project.run("T1").code == 0
    assert project.run().code == 0
    assert project.landed() == ["T2", "T1", "T3"]


def test_a_goal_that_is_not_met_is_asked_about_and_a_check_not_found_is_too(project: Any) -> None:
    goal = '[goal]\ntext = "Ship it"\ndone_when = [{ check = "no-such-check" }]'
    project.manifest(project.task("T1"), head=goal)
    outcome = project.run()
    assert outcome.code == 3
    assert "no-such-check" in project.decisions()[0].question
    assert project.landed() == ["T1"]
