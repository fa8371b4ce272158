from collections.abc import Callable
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from loopctl.domain import Sha, Task
from loopctl.engine import naming
from loopctl.engine.landing import Landing, Returned, key_of_kept, landing_key
from loopctl.engine.work import Ended
from loopctl.errors import LandingRefusedError
from loopctl.events import TaskLanded
from loopctl.steps import OutputTail, StepEvent, TodoDone
from loopctl.testing import ScriptedStep, ScriptedWorker
from loopctl.verdict import Blame, Check, CheckResult, Verdict

DONE: tuple[StepEvent, ...] = (OutputTail(0, "ok"), TodoDone("did it"))
MakeTask = Callable[..., Task]


def passed(bench: Any, task: Task, tree: str = "good") -> Ended:
    bench.gate.passing = frozenset({tree})
    ended: Ended = bench.run(ScriptedWorker([ScriptedStep(tree=tree, events=DONE)]), task)
    assert ended.is_passed
    return ended


def landing(bench: Any, head: str = "c1", tip: str | None = None) -> Landing:
    return Landing(bench.tools(), "r1", "loop/integration", Sha(head), Sha(tip) if tip else None)


def test_landing_makes_one_commit_with_trailers_on_the_branch(bench: Any, task: MakeTask) -> None:
    one = task()
    landed = landing(bench).land(one, passed(bench, one))
    assert isinstance(landed, TaskLanded)
    repository = bench.repository
    assert repository.branch == landed.commit
    assert (repository.trees[landed.commit], repository.parents[landed.commit]) == ("good", "c1")
    lines = repository.messages[landed.commit].splitlines()
    assert lines[0] == "T1: Title of T1"
    assert lines[-4:] == [
        "Loop-Task: T1",
        "Loop-Run: r1",
        "Loop-Gate: verify pass",
        f"Loop-Key: {landed.key}",
    ]


def test_long_title_is_whole_in_the_body(bench: Any, task: MakeTask) -> None:
    one = task(title="word " * 40 + "\nend")
    landed = landing(bench).land(one, passed(bench, one))
    assert isinstance(landed, TaskLanded)
    message = bench.repository.messages[landed.commit]
    assert len(message.splitlines()[0]) <= 72
    assert ("word " * 40).strip() + " end" in message


def test_moved_head_is_gated_again_on_the_carried_tree(bench: Any, task: MakeTask) -> None:
    one = task()
    ended = passed(bench, one)
    other = bench.repository.commit("other", Sha("c1"), "someone else's")
    bench.repository.branch = other
    seen = len(bench.gate.seen)
    landed = landing(bench, head=other, tip=other).land(one, ended)
    assert isinstance(landed, TaskLanded)
    assert [candidate.head for candidate in bench.gate.seen[seen:]] == [other]


def test_result_that_fails_on_the_moved_head_goes_back_with_the_evidence(
    bench: Any, task: MakeTask
) -> None:
    one = task()
    ended = passed(bench, one)
    other = bench.repository.commit("other", Sha("c1"), "someone else's")
    bench.repository.branch = other
    bench.gate.scripted = [CheckResult(Check.VERIFY, Verdict.FAIL, Blame.INTRODUCED, reason="red")]
    returned = landing(bench, head=other, tip=other).land(one, ended)
    assert returned == Returned(tree="good", observation="gate: red")
    assert bench.repository.branch == other


def test_refused_landing_leaves_branch_and_head_as_they_were(bench: Any, task: MakeTask) -> None:
    one = task()
    ended = passed(bench, one)
    bench.repository.refusal = "it is checked out"
    lander = landing(bench)
    with pytest.raises(LandingRefusedError, match="checked out"):
        lander.land(one, ended)
    assert (bench.repository.branch, lander.head) == (None, "c1")
    assert bench.of("task_landed") == []


def test_key_is_the_same_for_the_same_result_and_another_for_any_other() -> None:
    result = ("r1", "T1", "main", "c1", "tree")
    others = [
        tuple("x" if place == n else field for n, field in enumerate(result)) for place in range(5)
    ]
    keys = {
        landing_key(*fields) for fields in [result, *others, ("r1", "T1m", "ain", "c1", "tree")]
    }
    assert len(keys) == 7
    assert landing_key(*result) in keys


@given(st.text(min_size=1, max_size=20), st.text(min_size=1, max_size=20))
def test_key_can_be_told_from_the_ref_that_keeps_the_result(task: str, candidate: str) -> None:
    ref = naming.ref("r1", task, candidate)
    assert ref.count("/") == 4
    assert key_of_kept(ref, "c1", "tree") == landing_key("r1", task, candidate, "c1", "tree")
