"""What a pause keeps from being begun, and what it lets go on."""

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

import pytest

from loopctl.domain import Axis, StopReason, Task
from loopctl.engine.taskrun import Start, TaskRun
from loopctl.errors import CancelledError
from loopctl.steps import OutputTail, TodoDone
from loopctl.testing import ScriptedStep, ScriptedWorker

MakeTask = Callable[..., Task]
MakeWorker = Callable[..., ScriptedWorker]
DONE = (OutputTail(0, "ok"), TodoDone("did it"))


@dataclass
class PauseAfter:
    """The port ``Pause``: asked for once it was looked at so many times."""

    looks: int
    is_heeded: bool = False

    def is_asked(self) -> bool:
        self.looks -= 1
        self.is_heeded = self.is_heeded or self.looks < 0
        return self.is_heeded


def run(bench: Any, worker: ScriptedWorker, task: Task, pause: PauseAfter) -> Any:
    context = bench.context(worker)
    context = replace(context, tools=replace(context.tools, pause=pause))
    return TaskRun(context, task, Start(head=bench.repository.head())).run()


@pytest.mark.parametrize("steps", [0, 1, 2])
def test_no_step_is_issued_after_a_pause_and_the_last_one_is_saved(
    bench: Any, task: MakeTask, worker: MakeWorker, steps: int
) -> None:
    hands = worker(*(ScriptedStep(tree=f"t{n}", events=DONE, answer=f"{n}") for n in range(9)))
    with pytest.raises(CancelledError, match="asked to pause"):
        run(bench, hands, task(), PauseAfter(steps))
    assert len(hands.requests) == steps
    assert [iteration for _, iteration, _ in bench.sessions.saved] == list(range(1, steps + 1))
    assert bench.repository.open == set()


def test_a_paused_session_goes_on_with_its_next_iteration(
    bench: Any, task: MakeTask, worker: MakeWorker
) -> None:
    bench.gate.passing = frozenset({"good"})
    hands = worker(
        ScriptedStep(tree="half", events=DONE, answer="a"),
        ScriptedStep(tree="good", events=DONE, answer="b"),
    )
    with pytest.raises(CancelledError):
        run(bench, hands, task(), PauseAfter(1))
    assert bench.run(hands, task()).stop == StopReason(Axis.GOAL, "goal_met")
    assert [request.loop_iteration for request in hands.requests] == [1, 2]
    assert hands.requests[1].observation == "gate: verify is red"


def test_a_pause_is_not_asked_about_where_no_step_would_follow(
    bench: Any, task: MakeTask, worker: MakeWorker
) -> None:
    bench.gate.passing = frozenset({"good"})
    pause = PauseAfter(1)
    ended = run(bench, worker(ScriptedStep(tree="good", events=DONE)), task(), pause)
    assert ended.is_passed
    assert (pause.looks, pause.is_heeded) == (0, False)


def test_an_end_comes_before_a_pause(bench: Any, task: MakeTask, worker: MakeWorker) -> None:
    hands = worker(ScriptedStep(events=DONE, answer="same"))
    ended = run(bench, hands, task(), PauseAfter(3))
    assert ended.stop == StopReason(Axis.STALL, "no_progress")
