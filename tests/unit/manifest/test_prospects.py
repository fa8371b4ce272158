from dataclasses import replace

from loopctl.domain import Goal, Manifest, PolicyClass, Prospect, Scope, Task, TaskId, TaskStatus
from loopctl.manifest.prospects import prospects

A = Task(id=TaskId("A"), title="a")
B = Task(id=TaskId("B"), title="b", deps=(TaskId("A"),), worker="command", priority=5)
C = Task(id=TaskId("C"), title="c", status=TaskStatus.BACKLOG)
D = Task(id=TaskId("D"), title="d", deps=(TaskId("B"), TaskId("C")))


def test_what_would_run_comes_in_the_order_of_work_with_what_each_waits_for() -> None:
    would_run, waits = prospects(Manifest(Goal(), (A, B, C, D)), default_worker="claude")
    assert would_run == (
        Prospect(A, "claude", PolicyClass.REVERSIBLE),
        Prospect(B, "command", PolicyClass.REVERSIBLE, (TaskId("A"),)),
    )
    assert [(wait.task, wait.reason) for wait in waits] == [
        ("C", "backlog: set its status to todo"),
        ("D", "waits for C (backlog)"),
    ]


def test_the_policy_decides_the_class_of_each_task() -> None:
    def policy(task: Task) -> PolicyClass:
        return PolicyClass.NEEDS_APPROVAL if task.id == "A" else PolicyClass.REVERSIBLE

    would_run, waits = prospects(
        Manifest(Goal(), (A, replace(B, deps=()))), Scope(ids=(A.id,)), policy=policy
    )
    assert [(one.task.id, one.policy) for one in would_run] == [("A", PolicyClass.NEEDS_APPROVAL)]
    assert waits == ()


def test_a_task_that_nobody_can_work_on_waits_and_so_does_what_depends_on_it() -> None:
    would_run, waits = prospects(
        Manifest(Goal(), (A, B)),
        default_worker="graph",
        unworkable=lambda task: None if task.worker else "needs the worker graph",
    )
    assert would_run == ()
    assert [(wait.task, wait.reason) for wait in waits] == [
        ("A", "needs the worker graph"),
        ("B", "waits for A (blocked)"),
    ]


def test_a_task_that_was_named_and_is_done_says_so() -> None:
    done = replace(A, status=TaskStatus.DONE)
    would_run, waits = prospects(Manifest(Goal(), (done, B)), Scope(ids=(A.id, B.id)))
    assert [one.task.id for one in would_run] == ["B"]
    assert [(wait.task, wait.reason) for wait in waits] == [("A", "done already")]
    assert prospects(Manifest(Goal(), (done,)))[1] == ()
