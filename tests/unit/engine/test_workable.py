from loopctl.assembly import workers
from loopctl.domain import Task, TaskId
from loopctl.engine.workable import why_unworkable
from loopctl.worker.names import WORKERS

TASK = Task(TaskId("T1"), "One")


def test_the_names_are_those_of_the_workers_that_there_are() -> None:
    assert set(workers()) == WORKERS


def test_a_worker_that_is_not_there_is_named_and_the_task_is_not() -> None:
    reason = why_unworkable(TASK, "graph", WORKERS)
    assert reason is not None
    assert reason.startswith("needs the worker graph, which this version does not have")
    assert "T1" not in reason
    assert why_unworkable(TASK, "command", WORKERS) is None
