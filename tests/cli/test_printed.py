"""Every command that is printed is read back as what was meant, whatever tasks are called."""

import shlex
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from typer.testing import Result

from loopctl.cli.opening import commands_for
from loopctl.cli.table import COMMANDS
from loopctl.domain import Decision, DecisionKind, Scope, Task, TaskId
from loopctl.given import Answer, Kept
from loopctl.report.summary import TaskSummary

Loop = Callable[..., Result]

ID = st.one_of(
    st.sampled_from([*COMMANDS, "T5", "T5.1", "T5.1.1", "goal", "goal.1", "1", "a..b", "x.lock"]),
    st.from_regex(r"[A-Za-z0-9][A-Za-z0-9._-]{0,6}", fullmatch=True),
)
GUESS = st.one_of(
    st.sampled_from(["-v all", "--reject", "--", "approve", "it's $HOME", "…", "status"]),
    st.text(min_size=1, max_size=8),
)
FEW = settings(
    max_examples=15, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture]
)


@pytest.fixture
def elsewhere(project: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Any:
    """The shell stands beside the checkout, and the manifest is another than the usual."""
    monkeypatch.chdir(tmp_path)
    project.manifest.path = tmp_path / "m.toml"
    project.manifest.path.touch()
    return project


def read_back(loop: Loop, project: Any, command: str) -> Any:
    project.calls.clear()
    result = loop(*shlex.split(command)[len(commands_for(project).program) :])
    assert project.calls, (command, result.output)
    return project.calls[0]


@given(ids=st.lists(ID, min_size=2, max_size=4, unique=True))
@FEW
def test_a_task_s_command_runs_that_task(
    loop: Loop, opened: Any, elsewhere: Any, ids: list[str]
) -> None:
    elsewhere.manifest.tasks = tuple(Task(TaskId(one), "x") for one in ids)
    for task in ids:
        opened.clear()
        _, options = read_back(loop, elsewhere, commands_for(elsewhere).task(task))
        assert options.scope == Scope(ids=(TaskId(task),))
        assert opened[0].manifest == elsewhere.manifest.path
        assert opened[0].directory == elsewhere.checkout


@given(
    ids=st.lists(ID, min_size=2, max_size=4, unique=True),
    guess=GUESS,
    kind=st.sampled_from(DecisionKind),
)
@FEW
def test_an_answer_s_command_answers_that_decision(
    loop: Loop, elsewhere: Any, ids: list[str], guess: str, kind: DecisionKind
) -> None:
    elsewhere.manifest.tasks = tuple(Task(TaskId(one), "x") for one in ids)
    options = ("loops=4",) if kind is DecisionKind.BUDGET else ()
    reason = "loops=2 used" if options else ""
    elsewhere.asked = [
        Decision(f"{task}.{number}", task, "r", kind, "?", guess, options, reason)
        for task in [*ids, "@goal"]
        for number in (1, 2)
    ]
    commands = commands_for(elsewhere)
    for one in elsewhere.asked:
        command = commands.answer(one).replace('"…"', "words")
        _, (answer,) = read_back(loop, elsewhere, command)
        expected = {
            DecisionKind.APPROVAL: Answer(one.id, "approve"),
            DecisionKind.BUDGET: Answer(one.id, "loops=4", {"loops": 4.0}),
        }.get(kind, Answer(one.id, answer.text))
        assert answer == expected
        assert answer.text in {"approve", "loops=4", "words", guess.strip()}


@given(task=ID)
@FEW
def test_a_kept_tree_s_command_brings_it_back(loop: Loop, elsewhere: Any, task: str) -> None:
    ref = f"refs/loop/r/{task}/main"
    elsewhere.kept_trees = (Kept(ref, "e" * 40, landed=False),)
    command = commands_for(elsewhere).recover(TaskSummary(task, ref=ref))
    name, (back, branch) = read_back(loop, elsewhere, command)
    assert (name, back) == ("recover", ref)
    assert branch.startswith("recovered/")
