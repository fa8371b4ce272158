from collections.abc import Callable
from typing import Any

from loopctl.domain import Task
from loopctl.engine.phases import Phase, Stopwatch
from loopctl.plan import Checkpoint
from loopctl.steps import OutputTail, TodoDone
from loopctl.testing import MemorySessions, ScriptedStep, ScriptedWorker, StillClock

MakeTask = Callable[..., Task]
MakeWorker = Callable[..., ScriptedWorker]
DONE = (OutputTail(0, "ok"), TodoDone("did it"))


def test_a_stopwatch_tells_when_each_phase_began_and_how_long_it_took() -> None:
    clock = StillClock()
    clock.pass_time(7)
    watch = Stopwatch(clock, 10.0)
    for seconds, phase in ((0.001, Phase.PURSUE), (0.25, Phase.OBSERVE), (0.004, Phase.REFLECT)):
        with watch.own():
            clock.pass_time(seconds / 2)
        clock.pass_time(seconds / 2)
        watch.enter(phase)
    offsets = (("plan", 0.0), ("pursue", 1.0), ("observe", 251.0), ("reflect", 255.0))
    assert watch.offsets_ms() == offsets
    assert watch.until_ms(Phase.OBSERVE) == 251
    assert round(watch.overhead_ms, 6) == 137.5


def test_a_step_says_what_its_worker_and_what_the_harness_took(
    bench: Any, task: MakeTask, worker: MakeWorker
) -> None:
    def slow_brain(change: Callable[[Any], Any]) -> None:
        bench.clock.pass_time(0.002)

    class SlowSessions(MemorySessions):
        def save_checkpoint(self, session_id: str, iteration: int, checkpoint: Checkpoint) -> None:
            bench.clock.pass_time(0.030)
            super().save_checkpoint(session_id, iteration, checkpoint)

    keep = bench.repository.keep

    def slow_keep(*args: Any) -> Any:
        bench.clock.pass_time(0.005)
        return keep(*args)

    bench.sessions = SlowSessions()
    bench.brain.update = slow_brain
    bench.repository.keep = slow_keep
    bench.gate.passing = frozenset({"good"})
    bench.run(
        worker(
            ScriptedStep(tree="half", events=DONE, answer="a", seconds=1.0),
            ScriptedStep(tree="good", events=DONE, answer="b", seconds=2.0),
        ),
        task(),
    )
    first, second = bench.of("step_finished")
    assert (first.ms, second.ms) == (1002, 2002)
    # The second one also counts the checkpoint of the first.
    assert (first.overhead_ms, second.overhead_ms) == (7.0, 37.0)
    assert first.phases == (
        ("plan", 0.0),
        ("pursue", 2.0),
        ("observe", 1002.0),
        ("reflect", 1007.0),
    )
