"""A task that cannot be undone: nothing of it runs before a person has approved it."""

import json
from pathlib import Path
from typing import Any

import pytest

from loopctl.domain import APPROVED, REJECTED, DecisionKind


def write_tasks(project: Any, **more: str) -> None:
    project.manifest(
        project.task("T1", "echo a > T1; touch T1.ran", **more), project.task("T2", "echo b > T2")
    )


@pytest.fixture
def production(project: Any) -> Any:
    """A project of which one task is tagged as production, and a trace of each set-up."""
    write_tasks(project, area='["production"]')
    return project


def test_irreversible_task_is_put_aside_before_its_first_step_and_the_others_run(
    production: Any,
) -> None:
    assert production.run().code == 3
    [asked] = production.decisions()
    assert (asked.task, asked.kind, asked.options) == (
        "T1",
        DecisionKind.EXTERNAL,
        (APPROVED, REJECTED),
    )
    assert "cannot be undone" in asked.question
    assert production.status("T1") == "needs-human"
    assert production.landed() == ["T2"]


def test_approved_it_runs_and_rejected_it_does_not(production: Any) -> None:
    production.run()
    assert production.answer("T1.1", REJECTED).code == 3
    assert production.landed() == ["T2"]


def test_approval_lets_it_run_once_and_is_not_what_its_worker_is_told(production: Any) -> None:
    production.run()
    assert production.answer("T1.1", APPROVED).code == 0
    assert sorted(production.landed()) == ["T1", "T2"]
