"""The thread of a run: the next action, written to the capsule before anything that may lose it."""

from collections.abc import Sequence
from dataclasses import replace
from typing import Literal

from loopctl import failpoints
from loopctl.contextports import Brain
from loopctl.domain import Task
from loopctl.events import Noticed
from loopctl.ports import Emit

Before = Literal["step", "gate", "landing", "goal"]


def write_next(brain: Brain, before: Before, step: str, task: Task | None = None) -> None:
    """Write the exact next action: before a model is asked, a past is summed up, a gate runs.

    Args:
        brain: Of the run.
        before: What comes next, by which a test may kill the process at this very place.
        step: In words.
        task: Whose action it is; ``None`` for the run's own.
    """
    name, verify = (f"{task.id}, ", task.verify_cmd or "") if task is not None else ("", "")
    brain.update(lambda capsule: replace(capsule, current_step=f"{name}{step}", verify_cmd=verify))
    failpoints.reach(f"next.{before}")


class Thread:
    """The thread of one candidate: an action is written once, however often it is announced."""

    def __init__(self, brain: Brain, task: Task) -> None:
        self._brain = brain
        self._task = task
        self._next = ""

    def write(self, iteration: int, text: str) -> None:
        """Write down what a step is about to do."""
        step = f"step {iteration}: {text}"
        if step != self._next:
            write_next(self._brain, "step", step, self._task)
        self._next = step


def lay_down(brain: Brain, open_decisions: Sequence[str]) -> None:
    """Write that a run has ended: nothing comes next, or the answers that it waits for."""
    step = f"wait for answers: {', '.join(open_decisions)}" if open_decisions else ""
    brain.update(lambda capsule: replace(capsule, current_step=step, verify_cmd=""))


def take_up(brain: Brain, emit: Emit) -> None:
    """Read the capsule again when a run goes on, and tell where it was."""
    step = brain.boot().current_step
    if step:
        emit(Noticed(text=f"the capsule says what was next: {step}", level="info"))
