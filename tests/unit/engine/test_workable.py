from loopctl.domain import Task, TaskId
from loopctl.engine.workable import why_unworkable

TASK = Task(TaskId("T1"), "One")


def test_a_worker_that_is_not_there_is_named_and_the_task_is_not() -> None:
    reason = why_unworkable(TASK, "codex", {"command": ""})
    assert reason is not None
    assert reason.startswith("needs the worker codex, which this version does not have")
    assert "T1" not in reason
    assert why_unworkable(TASK, "command", {"command": ""}) is None


def test_what_hinders_a_worker_is_said_as_it_is() -> None:
    said = why_unworkable(TASK, "graph", {"graph": "no model is there"})
    assert said == "needs the worker graph: no model is there"
