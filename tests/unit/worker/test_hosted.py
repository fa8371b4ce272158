from typing import Any

import pytest

from loopctl.calls import Ruling, ToolCall, ToolResult, ToolSpec, Waiting
from loopctl.domain import Goal, Limits, Task, TaskId, Usage
from loopctl.errors import LedgerConflictError
from loopctl.moneyports import Claim, Refused, Reserved
from loopctl.steps import (
    StepEvent,
    StepRequest,
    ToolCallFinished,
    ToolCallStarted,
    TurnTaken,
    UsageReported,
    WorkerProgress,
)
from loopctl.worker.hosted import HostedStep
from loopctl.worker.protocol import AskCall, Done, KeepReply, Kept, Reserve, Settle
from loopctl.worker.till import PayersTill

USAGE = Usage(10, 5, 0.25)
CLAIM = Claim("", "", "step", "m", 1, 1.0)


class Behind:
    """The desk, the purse and the replies of one step."""

    specs: tuple[ToolSpec, ...] = ()

    def __init__(self) -> None:
        self.calls: list[int] = []
        self.reservations = 0

    def rule(self, call: ToolCall) -> Ruling:
        raise NotImplementedError

    def call(self, call: ToolCall, approval: str | None = None) -> ToolResult | Waiting:
        del approval
        self.calls.append(call.ordinal)
        return ToolResult(f"seen {call.ordinal}")

    def keep(self, session_id: str, iteration: int, number: int, reply: str) -> None:
        pass

    def replies(self, session_id: str, iteration: int, first: int = 0) -> tuple[str, ...]:
        del session_id, iteration
        return ("p", "r1", "r2")[first:]

    def reserve(self, claim: Claim) -> Reserved | Refused:
        del claim
        self.reservations += 1
        return Reserved(self.reservations)

    def settle(self, reservation: int, usage: Usage) -> None:
        pass

    def spent(self, run_id: str, task: str | None = None) -> Usage:
        raise NotImplementedError


@pytest.fixture
def behind() -> Behind:
    return Behind()


@pytest.fixture
def step(behind: Behind) -> HostedStep:
    request = StepRequest("s", 1, "", Goal(), Task(TaskId("T"), "t"), "r", first_reply=1)
    return HostedStep(request, behind, PayersTill(behind, "r", "T", Limits()), behind)


def call(ordinal: int, **arguments: Any) -> AskCall:
    return AskCall(ToolCall("s", 1, ordinal, "look", arguments))


def told(step: HostedStep, *events: StepEvent) -> list[StepEvent]:
    return [event for event in events if step.is_new(event)]


FIRST = (UsageReported(USAGE), ToolCallStarted(0, "look"), ToolCallFinished(0, "look", "seen 0"))


@pytest.mark.parametrize("repeated", [FIRST, FIRST[1:]])
def test_a_replay_is_silent_whether_or_not_it_tells_of_usage_again(
    step: HostedStep, repeated: tuple[StepEvent, ...]
) -> None:
    assert told(step, *FIRST) == list(FIRST)
    step.again()
    new = (UsageReported(USAGE), TurnTaken("new"))
    assert told(step, *repeated, *new) == list(new)


@pytest.mark.parametrize("ask", [Reserve(CLAIM), call(1), KeepReply(1, "r")])
def test_what_is_asked_anew_ends_the_replay_so_that_equal_events_count_again(
    step: HostedStep, ask: Any
) -> None:
    assert told(step, *FIRST)
    step.again()
    step.serve(ask)
    assert told(step, UsageReported(USAGE)) == [UsageReported(USAGE)]


def test_a_second_child_is_given_the_steps_own_replies_alone(step: HostedStep) -> None:
    assert step.again().replies == ("r1", "r2")


def test_a_call_is_made_once_and_known_again_also_by_arguments_that_are_no_json(
    step: HostedStep, behind: Behind
) -> None:
    first = step.serve(call(0, at=float("nan"), b=1))
    step.again()
    assert step.serve(call(0, b=1, at=float("nan"))) == first
    assert behind.calls == [0]
    with pytest.raises(LedgerConflictError):
        step.serve(call(0, at=2))


def test_what_was_settled_and_not_told_is_reported_once(step: HostedStep) -> None:
    assert step.unreported() is None
    for _ in range(2):
        reserved = step.serve(Reserve(CLAIM))
        assert isinstance(reserved, Reserved)
        # The second time changes nothing.
        assert step.serve(Settle(reserved.id, USAGE)) == Done()
        assert step.serve(Settle(reserved.id, USAGE)) == Done()
    assert told(step, UsageReported(USAGE))
    assert step.unreported() == UsageReported(USAGE)
    assert step.unreported() is None


def test_what_another_process_has_paid_is_told_and_hides_nothing_that_this_one_has(
    behind: Behind,
) -> None:
    request = StepRequest("s", 1, "", Goal(), Task(TaskId("T"), "t"), "r", replies=("r0",))
    step = HostedStep(request, behind, PayersTill(behind, "r", "T", Limits()), behind)
    before = UsageReported(USAGE, 0)
    assert told(step, before) == [before]
    reserved = step.serve(Reserve(CLAIM))
    assert isinstance(reserved, Reserved)
    step.serve(Settle(reserved.id, USAGE))
    assert step.unreported() == UsageReported(USAGE)


def test_progress_comes_from_the_child_or_from_what_was_seen_of_it(step: HostedStep) -> None:
    told(step, ToolCallStarted(0, "look"), ToolCallFinished(0, "look", "no", is_error=True))
    seen = WorkerProgress(made_tool_calls=True, tool_calls_errored=True, response_delta_hash="")
    assert (step.is_over, step.progress) == (False, seen)
    last = WorkerProgress(made_tool_calls=False, tool_calls_errored=False, response_delta_hash="x")
    assert told(step, last) == []
    assert (step.is_over, step.progress) == (True, last)


def test_a_step_goes_on_with_a_reply_as_it_was_kept_and_so_makes_the_same_calls_again(
    step: HostedStep, behind: Behind, monkeypatch: pytest.MonkeyPatch
) -> None:
    kept: list[str] = []
    monkeypatch.setattr(
        behind, "keep", lambda *given: kept.append(given[-1].replace("k3y", "[key]")), raising=False
    )
    monkeypatch.setattr(behind, "replies", lambda *_: tuple(kept), raising=False)
    assert step.serve(KeepReply(1, "say k3y")) == Kept("say [key]")
