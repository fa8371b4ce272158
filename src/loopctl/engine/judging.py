"""Asks the gate about one candidate, and remembers what it said last."""

from functools import cache

from pydantic import TypeAdapter

from loopctl.domain import Task
from loopctl.engine.telling import Teller
from loopctl.engine.thread import write_next
from loopctl.engine.trees import Trees
from loopctl.engine.work import Tools, Work
from loopctl.ports import Sandbox
from loopctl.records import Candidate
from loopctl.verdict import Blame, GateResult


class Judging:
    """The gate as one candidate meets it.

    Attributes:
        last: What the gate found last; ``None`` before.
    """

    def __init__(
        self, tools: Tools, sandbox: Sandbox, work: Work, trees: Trees, tell: Teller
    ) -> None:
        self._tools = tools
        self._sandbox = sandbox
        self._work = work
        self._trees = trees
        self._tell = tell
        self.last: GateResult | None = None

    @property
    def is_excused(self) -> bool:
        """The last gate run says nothing about the worker: the machine or the test is unsteady."""
        return self.last is not None and self.last.blame in {Blame.ENVIRONMENT, Blame.FLAKY}

    def recall(self) -> bool:
        """Take up the evidence of a gate that has passed this very tree before; say if there is."""
        checkpoint = self._work.session.checkpoint
        if checkpoint is None or not checkpoint.gate:
            return False
        known = read_evidence(checkpoint.gate)
        is_same = (checkpoint.tree, known.head) == (self._trees.tree, self._sandbox.base)
        if not is_same or not known.is_passed:
            return False
        self.last = known
        return True

    def ask(self, task: Task, *, is_draft: bool) -> tuple[GateResult, int]:
        """Return what the gate finds on the tree as it is kept, and how many milliseconds it took.

        Args:
            task: With what was answered so far.
            is_draft: The critic of prose is asked, not the judge that lets it land.

        Raises:
            SandboxError: No checkout for it could be made.
            CancelledError: The run was asked to stop.
        """
        tree, base = self._trees.tree, self._sandbox.base
        candidate = Candidate(
            task=task,
            name=self._work.session.candidate,
            base=base,
            tree=tree,
            head=base,
            left_out=self._sandbox.left_out() if tree == self._trees.base else "",
            is_draft=is_draft,
        )
        words = f"gate on tree {tree}: land it where it passes, else show the worker the evidence"
        write_next(self._tools.brain, "gate", words, self._work.task)
        began = self._tools.clock.monotonic()
        self.last = result = self._tools.gate.judge(candidate)
        ms = int((self._tools.clock.monotonic() - began) * 1000)
        self._tell.gate_finished(result)
        return result, ms


def evidence(gate: GateResult) -> str:
    """Return what a gate has found as JSON, for a checkpoint."""
    return _results().dump_json(gate).decode()


def read_evidence(text: str) -> GateResult:
    """Return what :func:`evidence` gave.

    Raises:
        ValueError: It is something else.
    """
    return _results().validate_json(text)


@cache
def _results() -> TypeAdapter[GateResult]:
    return TypeAdapter(GateResult)
