from typing import Any

import pytest

from loopctl.domain import (
    Decision,
    DecisionKind,
    Goal,
    Limits,
    Manifest,
    Task,
    TaskId,
    TaskStatus,
)
from loopctl.engine.answers import Answer, check, freed, open_decisions, reach
from loopctl.errors import AnswerError


def task(task_id: str, *deps: str, status: TaskStatus = TaskStatus.TODO) -> Task:
    return Task(
        id=TaskId(task_id), title="t", deps=tuple(TaskId(dep) for dep in deps), status=status
    )


def decision(decision_id: str, **keys: Any) -> Decision:
    owner = decision_id.rpartition(".")[0]
    fields: dict[str, Any] = {"kind": DecisionKind.EXTERNAL, "question": "?", **keys}
    return Decision(id=decision_id, task=owner, run_id=fields.pop("run_id", "r1"), **fields)


def test_reach_is_the_answered_tasks_and_what_waited_for_them_over_any_distance() -> None:
    manifest = Manifest(
        Goal(),
        (
            task("A", status=TaskStatus.NEEDS_HUMAN),
            task("B", "A"),
            task("C", "B"),
            task("D"),
            task("E", "A", status=TaskStatus.BACKLOG),
        ),
    )
    assert reach(manifest, [TaskId("A")]).ids == ("A", "B", "C")


def test_task_with_another_open_question_is_not_freed() -> None:
    both = [decision("A.1", answer="x"), decision("A.2")]
    assert freed([both[0]], both) == ()
    assert freed([both[0]], both[:1]) == ("A",)


def test_rejected_task_stays_as_it_is() -> None:
    rejected = decision("A.1", answer="reject")
    assert freed([rejected], [rejected]) == ()


@pytest.mark.parametrize(
    ("answer", "message"),
    [
        (Answer("A.9", "x"), "there is no decision A.9"),
        (Answer("B.1", "x"), "'red'; the first answer stands"),
        (Answer("A.1", "  "), "is empty"),
        (Answer("C.1", "yes"), "--budget loops=50"),
    ],
)
def test_answer_that_does_not_fit_is_refused_by_name(answer: Answer, message: str) -> None:
    known = [
        decision("A.1"),
        decision("B.1", answer="red", answered_at="yesterday"),
        decision("C.1", kind=DecisionKind.BUDGET),
    ]
    with pytest.raises(AnswerError, match=message):
        check([answer], known)


def test_budget_is_raised_or_rejected() -> None:
    known = [decision("C.1", kind=DecisionKind.BUDGET)]
    assert check([Answer("C.1", "yes", Limits(loops=9))], known) == (known[0],)
    assert check([Answer("C.1", "reject")], known) == (known[0],)


def test_two_answers_to_one_question_are_refused() -> None:
    with pytest.raises(AnswerError, match="twice"):
        check([Answer("A.1", "x"), Answer("A.1", "y")], [decision("A.1")])


def test_decision_of_a_task_that_went_on_without_an_answer_does_not_stand() -> None:
    manifest = Manifest(
        Goal(),
        (
            task("A", status=TaskStatus.NEEDS_HUMAN),
            task("B", status=TaskStatus.DONE),
            task("C", status=TaskStatus.BLOCKED),
        ),
    )
    known = [decision("A.1"), decision("B.1"), decision("C.1"), decision("A.2", answer="x")]
    assert [one.id for one in open_decisions(known, manifest)] == ["A.1", "C.1"]


def test_goal_question_stands_only_for_the_newest_run_that_asked() -> None:
    known = [decision("@goal.1"), decision("@goal.2", run_id="r2")]
    assert [one.id for one in open_decisions(known, Manifest(Goal(), ()))] == ["@goal.2"]
