"""Issues a step until the machine lets it happen, or a human has to be asked."""

from dataclasses import replace
from typing import Final

from loopctl.engine.issuing import Issuer
from loopctl.engine.pursuit import Step
from loopctl.engine.trees import Trees
from loopctl.engine.work import Tools, Work
from loopctl.events import Noticed
from loopctl.plan import Plan

FAULT_TRIES: Final = 2
"""How many environment faults a candidate meets, of any kind, before a human is asked."""


class Steady:
    """Counts the faults of the machine that one candidate meets, the gate's too."""

    def __init__(self, tools: Tools, issuer: Issuer, trees: Trees, work: Work) -> None:
        self._tools = tools
        self._issuer = issuer
        self._trees = trees
        self._work = work
        self._faults = 0

    def issue(
        self, iteration: int, plan: Plan, observation: str, *, is_planning: bool = False
    ) -> Step:
        """Return what a step came to; one that the machine has cut short is taken again.

        It stays the same step, with the files as they were before it, so that its replies and
        calls are found where they were left.

        Raises:
            SandboxError: The sandbox is gone; the step did not happen.
            CancelledError: The run was asked to stop, or to pause.
        """
        while True:
            step = self._issuer.issue(iteration, plan, observation, is_planning=is_planning)
            if not step.is_cut:
                return step
            candidate = self._work.session.candidate
            text = f"step {iteration} ({candidate}) was cut short: {step.said}"
            self._tools.emit(Noticed(task=self._work.task.id, text=text))
            rescued = self._trees.undo()
            is_last = self.is_one_too_many()
            if not rescued.is_complete:
                said = f"{step.said.rstrip('.')}; its files are left in {rescued.folder}"
                return replace(step, said=said)
            if is_last:
                return step
            self._tools.heed_pause()

    def is_one_too_many(self) -> bool:
        """Count one more fault; say whether a human is to be asked."""
        self._faults += 1
        return self._faults >= FAULT_TRIES
