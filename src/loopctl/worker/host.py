"""The graph worker on the engine's side: gives the child a step, serves its asks, tells its events.

The step's tool calls run here, in the thread of the engine that waits for the step's events.

A child that dies in the middle of a step is followed by another, once a step, which does it again
from its beginning with the replies that were kept: no call is made twice, and no event told twice
(``hosted.py`` says how). Where that one dies too, the machine is at fault.
"""

from collections.abc import Generator
from dataclasses import dataclass, replace
from typing import Final

from loopctl.clock import Clock
from loopctl.contextports import Answered, Unanswered
from loopctl.domain import Limits
from loopctl.errors import EnvironmentFaultError
from loopctl.moneyports import Purse
from loopctl.plan import Budget
from loopctl.ports import Sandbox
from loopctl.steps import OutputTail, StepEvent, StepRequest, WorkerProgress
from loopctl.storeports import ReplyStore
from loopctl.toolports import Desks
from loopctl.worker.hosted import HostedStep
from loopctl.worker.link import Lost, ModelProcess
from loopctl.worker.protocol import (
    AskCall,
    AskRule,
    DoStep,
    Ended,
    Failed,
    Failure,
    KeepReply,
    Ready,
    Reserve,
    Settle,
    Vectors,
)
from loopctl.worker.till import PayersTill

CHILDREN_PER_STEP: Final = 2
"""So many may die before the machine counts as at fault."""

NOTHING_DONE: Final = WorkerProgress(
    made_tool_calls=False, tool_calls_errored=False, response_delta_hash=""
)

_OUT_OF_TIME: Final = "the step was ended: the time that its task may take (wall_s) is used up"


@dataclass(frozen=True, slots=True)
class _Trouble:
    """Why the step did not come to its own end."""

    text: str
    is_environment: bool = True


class GraphWorker:
    """The port ``Worker`` for ``worker = "graph"``.

    Args:
        process: Shared by all threads of a run; who made it closes it.
        grace_s: So long a step may go on after its task's time is over, to come to its own end.
    """

    makes_plans = True

    def __init__(
        self,
        process: ModelProcess,
        desks: Desks,
        purse: Purse,
        replies: ReplyStore,
        *,
        clock: Clock,
        grace_s: float = 60.0,
    ) -> None:
        self._process = process
        self._desks = desks
        self._purse = purse
        self._replies = replies
        self._clock = clock
        self._grace_s = grace_s

    def warm(self) -> None:
        """Start the child ahead of the first step."""
        self._process.warm()

    def execute_step(
        self, request: StepRequest, sandbox: Sandbox
    ) -> Generator[StepEvent, None, None]:
        """Yield what happened; exactly one ``WorkerProgress`` comes last.

        A child that cannot be had, died twice or met a fault is an ``OutputTail`` that says
        so, with ``is_environment``. Closing the generator ends the step in the child.

        Raises:
            SandboxError: The sandbox is gone.
            CancelledError: The run was asked to stop; the step was ended in the child.
            LedgerConflictError: A call does not fit the ledger, or the step.
            CallInFlightError: Another process is at a call of the step.
            CheckpointConflictError: A kept reply is another than before.
            StoreError: The harness's own database cannot be used.
        """
        budget = request.budget
        caps = Limits(tokens=budget.tokens_max, usd=budget.usd_max)
        till = PayersTill(self._purse, request.run_id, request.task.id, caps)
        try:
            desk = self._desks.open(request.session_id, request.task, request.candidate, sandbox)
        except EnvironmentFaultError as exc:
            yield OutputTail(exit=1, text=str(exc), is_environment=True)
            yield NOTHING_DONE
            return
        step = HostedStep(request, desk, till, self._replies)
        try:
            trouble = yield from self._do(step, DoStep(request, desk.specs))
        except EnvironmentFaultError as exc:
            trouble = _Trouble(str(exc))
        if usage := step.unreported():
            yield usage
        if trouble is not None:
            yield OutputTail(exit=1, text=trouble.text, is_environment=trouble.is_environment)
        yield step.progress

    def _do(self, step: HostedStep, work: DoStep) -> Generator[StepEvent, None, _Trouble | None]:
        """Tell the step's events; return why it did not come to its own end."""
        deadline = self._deadline(work.request.budget)
        reason = ""
        for _ in range(CHILDREN_PER_STEP):
            came = yield from self._attempt(step, work, deadline)
            if not isinstance(came, Lost):
                return came
            reason = came.reason
            work = replace(work, request=step.again())
        return _Trouble(
            f"{reason}\n(the {CHILDREN_PER_STEP} processes that were at this step died)"
        )

    def _attempt(
        self, step: HostedStep, work: DoStep, deadline: float | None
    ) -> Generator[StepEvent, None, _Trouble | Lost | None]:
        with self._process.talk(work, step.serve) as talk:
            while True:
                heard = talk.hear(deadline)
                if heard is None:
                    return _Trouble(_OUT_OF_TIME, is_environment=False)
                if isinstance(heard, Lost):
                    return None if step.is_over else heard
                match heard.body:
                    case AskRule() | AskCall() | KeepReply() | Reserve() | Settle() as ask:
                        talk.answer(heard.ask, step.serve(ask))
                    case Ended():
                        return None
                    case Failed() as failed:
                        return _of_failure(failed)
                    case Ready() | Answered() | Unanswered() | Vectors() as other:
                        return _Trouble(f"the model worker answered a step with {other!r}")
                    case event:
                        if step.is_new(event):
                            yield event

    def _deadline(self, budget: Budget) -> float | None:
        if budget.wall_max_ms is None:
            return None
        left_s = max(0, budget.wall_max_ms - budget.wall_ms) / 1000
        return self._clock.monotonic() + left_s + self._grace_s


def _of_failure(failed: Failed) -> _Trouble:
    if failed.kind is Failure.ENVIRONMENT:
        return _Trouble(failed.text)
    return _Trouble(
        f"the model worker met a fault of loop's own, and ended the step:\n{failed.text}"
    )
