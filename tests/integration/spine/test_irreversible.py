"""A task that cannot be undone: nothing of it runs before a person has approved it."""

import json
from typing import Any

from loopctl.domain import APPROVED, REJECTED, DecisionKind


def test_it_is_put_aside_as_external_before_anything_of_it_runs(project: Any) -> None:
    project.manifest(
        project.task("T1", "echo a > T1", area=["production"]), project.task("T2", "echo b > T2")
    )
    outcome = project.run()
    assert outcome.code == 3
    [asked] = project.decisions()
    assert (asked.task, asked.kind, asked.options) == (
        "T1",
        DecisionKind.EXTERNAL,
        (APPROVED, REJECTED),
    )
    assert "effects that cannot be undone (its area is production)" in asked.question
    assert project.status("T1") == "needs-human"
    assert project.landed() == ["T2"]
    assert {event.task for event in outcome.of("step_started")} == {"T2"}


def test_approved_it_runs_and_its_worker_is_not_told_the_approval(project: Any) -> None:
    command = 'echo "answer=$LOOP_ANSWER" > T1'
    project.manifest(project.task("T1", command, area=["production"]))
    project.run()
    assert project.answer("T1.1", APPROVED).code == 0
    assert project.on_branch("T1") == "answer="
    assert project.decisions() == ()


def test_rejected_it_stays_as_it_is(project: Any) -> None:
    project.manifest(project.task("T1", "echo a > T1", area=["production"]))
    project.run()
    project.loop("answer", "T1", "--reject", untouched=False)
    assert project.status("T1") == "needs-human"
    assert project.landed() == []


def test_approval_is_for_what_was_shown_and_not_for_another_command(project: Any) -> None:
    ssh = "ssh -V; [ -z x ] && ssh host {0}; echo a > T1"
    project.manifest(project.task("T1", ssh.format("one")))
    project.run()
    project.manifest(project.task("T1", ssh.format("two"), status="needs-human"))
    assert project.answer("T1.1", APPROVED).code == 3
    assert "ssh host two" in project.decisions()[-1].question
    assert project.landed() == []


def test_floor_is_not_lifted_by_any_answer_and_says_what_to_do_by_hand(project: Any) -> None:
    project.settings('[policy]\napprove = ["bash:git push"]\n')
    project.manifest(project.task("T1", "echo a > T1; git push"))
    assert project.run().code == 3
    [asked] = project.decisions()
    assert asked.kind is DecisionKind.EXTERNAL
    assert "no approval changes that: command: pushes to another repository" in asked.question
    assert "by hand" in asked.question
    refused = project.loop("answer", "T1", "--approve")
    assert refused.code == 2
    assert "T1.1 is no approval" in refused.err
    assert project.answer("T1.1", "I have pushed").code == 3
    assert project.landed() == []


def test_set_up_that_the_floor_refuses_never_runs(project: Any) -> None:
    project.settings('[sandbox]\nsetup_cmd = "echo up > ~/floor-was-here"\n')
    project.manifest(project.task("T1", "echo a > T1"))
    assert project.run().code == 3
    assert "[sandbox] setup_cmd: writes to what is outside" in project.decisions()[0].question


def test_dry_run_shows_each_tasks_class(project: Any) -> None:
    project.settings('[policy]\napprove = ["bash:make install", "step:T4"]\n')
    project.manifest(
        project.task("T1", "make"),
        project.task("T2", "make install"),
        project.task("T3", "git push"),
        project.task("T4", "make"),
    )
    found = json.loads(project.loop("--dry-run", "--json").out)
    shown = {one["id"]: one["policy"] for one in found["tasks"]}
    assert shown == {
        "T1": "reversible",
        "T2": "needs-approval",
        "T3": "irreversible",
        "T4": "needs-approval",
    }
    assert "irreversible" in project.loop("--dry-run").out


def test_verify_command_of_the_command_line_counts(project: Any) -> None:
    project.manifest(project.task("T1", "make"))
    found = json.loads(project.loop("--dry-run", "--json", "--verify", "sudo id").out)
    assert found["tasks"][0]["policy"] == "irreversible"
