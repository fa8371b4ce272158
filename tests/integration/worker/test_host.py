import os
import signal
import threading
from collections.abc import Callable, Generator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest

from loopctl.calls import MAX_RESULT_BYTES, ApprovalRequired, ToolCall, ToolResult, Waiting
from loopctl.domain import Limits, Usage
from loopctl.errors import (
    CancelledError,
    CheckpointConflictError,
    EnvironmentFaultError,
    LedgerConflictError,
    LoopctlError,
    SandboxError,
)
from loopctl.moneyports import Cap, Claim
from loopctl.plan import Budget
from loopctl.steps import (
    BudgetRefused,
    InterruptRequired,
    OutputTail,
    StepEvent,
    ToolCallFinished,
    ToolCallStarted,
    TurnTaken,
    UsageReported,
    WorkerProgress,
)

USAGE = Usage(10, 5, 0.25)
DONE = WorkerProgress(made_tool_calls=True, tool_calls_errored=False, response_delta_hash="done")


def called(ordinal: int) -> list[StepEvent]:
    return [
        ToolCallStarted(ordinal, "look"),
        ToolCallFinished(ordinal, "look", f"seen {ordinal}"),
    ]


def call(ordinal: int) -> list[Any]:
    return ["call", ordinal, "look", {"at": ordinal}]


def test_a_step_goes_through_with_its_calls_money_and_replies(house: Any) -> None:
    events = house.step(
        ["reply", "r0"],
        ["rule", "rm"],
        call(0),
        ["reply", "r1"],
        call(1),
        budget=Budget(tokens_max=500, usd_max=2.0),
    )
    assert events == [
        UsageReported(USAGE),
        TurnTaken("Ruling(action=<Action.DENY: 'deny'>, reason='never rm')"),
        *called(0),
        UsageReported(USAGE),
        *called(1),
        DONE,
    ]
    assert house.desk.calls == [ToolCall("s1", 1, n, "look", {"at": n}) for n in (0, 1)]
    assert house.replies.replies("s1", 1) == ("r0", "r1")
    claim = Claim("r1", "T1", "step", "m", 100, 1.0, Limits(tokens=500, usd=2.0))
    assert house.purse.claims == [claim, claim]
    assert house.purse.settled == {1: USAGE, 2: USAGE}
    assert house.desk.opened == [("s1", "T1", "main")]


def test_calls_are_made_in_the_thread_that_waits_for_the_step(house: Any) -> None:
    house.step(call(0))
    assert house.desk.threads == {threading.get_ident()}


def test_a_fresh_process_for_each_step_gives_the_same_events(make: Callable[..., Any]) -> None:
    script = (["reply", "r0"], call(0), ["tell", "a"], ["reply", "r1"], call(1))
    one, many = make(), make()
    together = [one.step(*script, loop_iteration=n) for n in (1, 2)]
    apart = []
    for n in (1, 2):
        apart.append(many.step(*script, loop_iteration=n))
        many.children[-1].close()
    assert together == apart
    assert (len(one.children), len(many.children)) == (1, 2)


def test_a_child_killed_in_the_middle_is_followed_by_one_that_goes_on(
    house: Any, tmp_path: Path
) -> None:
    events = house.step(
        ["reply", "r0"],
        call(0),
        ["tell", "a"],
        ["reply", "r1"],
        call(1),
        ["die_once", str(tmp_path / "mark")],
        ["tell", "b"],
        ["reply", "r2"],
        call(2),
    )
    assert events == [
        UsageReported(USAGE),
        *called(0),
        TurnTaken("a"),
        UsageReported(USAGE),
        *called(1),
        TurnTaken("b"),
        UsageReported(USAGE),
        *called(2),
        DONE,
    ]
    assert [made.ordinal for made in house.desk.calls] == [0, 1, 2]
    assert house.replies.replies("s1", 1) == ("r0", "r1", "r2")
    assert len(house.purse.claims) == 3
    assert [child.returncode for child in house.children] == [-signal.SIGKILL, None]


def test_a_child_killed_while_its_call_is_made_gets_its_result_from_before(house: Any) -> None:
    def kill(made: ToolCall) -> None:
        if made.ordinal == 1:
            os.kill(house.children[0].pid, signal.SIGKILL)

    house.desk.on_call = kill
    events = house.step(["reply", "r0"], call(0), call(1), call(2))
    assert events == [UsageReported(USAGE), *called(0), *called(1), *called(2), DONE]
    assert [made.ordinal for made in house.desk.calls] == [0, 1, 2]


def test_a_kill_at_any_event_leaves_the_same_events(make: Callable[..., Any]) -> None:
    script = (["reply", "r0"], call(0), ["tell", "a"], call(1), ["reply", "r1"], ["tell", "a"])
    undisturbed = make().step(*script)
    for number in range(len(undisturbed)):
        house = make()
        events = []
        for event in house.begin(*script):
            events.append(event)
            if len(events) == number + 1:
                os.kill(house.children[0].pid, signal.SIGKILL)
        assert events == undisturbed, number
        assert [made.ordinal for made in house.desk.calls] == [0, 1]
        house.process.close()


def test_the_planning_steps_replies_are_not_given_to_the_next_one(
    house: Any, tmp_path: Path
) -> None:
    house.replies.keep("s1", 1, 0, "the plan")
    house.step(
        ["reply", "r1"], ["die_once", str(tmp_path / "mark")], ["reply", "r2"], first_reply=1
    )
    assert house.replies.replies("s1", 1) == ("the plan", "r1", "r2")


def test_a_second_death_is_the_machines_fault_and_says_what_it_said_last(house: Any) -> None:
    events = house.step(["reply", "r0"], call(0), ["die"])
    *before, tail, progress = events
    assert before == [UsageReported(USAGE), *called(0)]
    assert isinstance(tail, OutputTail)
    assert (tail.exit, tail.is_environment) == (1, True)
    assert "ended by signal 9" in tail.text
    assert progress == WorkerProgress(
        made_tool_calls=True, tool_calls_errored=False, response_delta_hash=""
    )
    assert len(house.children) == 2
    assert house.step(["tell", "on"]) == [TurnTaken("on"), DONE]


def test_keys_are_taken_out_of_what_a_dying_child_has_said(house: Any, tmp_path: Path) -> None:
    script = (["die_once", str(tmp_path / "1")], ["die_once", str(tmp_path / "2")])
    tail = house.step(*script)[0]
    assert isinstance(tail, OutputTail)
    assert "it dies of the key [key]" in tail.text


def test_what_was_paid_for_a_lost_reply_is_reported(house: Any) -> None:
    def keep(*_: Any) -> None:
        house.replies.keep = kept
        os.kill(house.children[0].pid, signal.SIGKILL)

    kept, house.replies.keep = house.replies.keep, keep
    events = house.step(["reply", "r0"])
    assert events == [UsageReported(USAGE), UsageReported(USAGE), DONE]
    assert len(house.purse.settled) == 2


@pytest.mark.parametrize(
    ("kind", "said"),
    [
        ("environment", "no model at [key]"),
        ("bug", "ZeroDivisionError: [key] by zero"),
        ("exit", "SystemExit: 3"),
    ],
)
def test_whatever_a_step_raises_ends_the_step_and_not_the_process(
    house: Any, kind: str, said: str
) -> None:
    before, tail, progress = house.step(["fail", kind])
    assert before == TurnTaken("before")
    assert isinstance(tail, OutputTail)
    assert tail.is_environment
    assert said in tail.text
    assert isinstance(progress, WorkerProgress)
    assert house.step(["tell", "on"]) == [TurnTaken("on"), DONE]
    assert len(house.children) == 1


def test_an_event_that_cannot_be_told_ends_the_step_alone(house: Any) -> None:
    tail, _ = house.step(["odd"])
    assert isinstance(tail, OutputTail)
    assert "cannot be said in JSON" in tail.text
    assert len(house.children) == 1


def test_libraries_that_print_do_not_break_what_is_said(house: Any) -> None:
    assert house.step(["print", "Hello!"], call(0)) == [TurnTaken("printed"), *called(0), DONE]
    house.process.close()
    assert house.children[0].tail().count("Hello!") == 3


def test_nobody_in_the_child_can_read_what_is_meant_for_it(house: Any) -> None:
    assert house.step(["read_input"])[0] == TurnTaken("b''")


def test_steps_of_four_threads_go_on_at_once_in_one_child(house: Any) -> None:
    together = threading.Barrier(4, timeout=60)

    def meet(made: ToolCall) -> ToolResult:
        # Nobody gets through unless all four are in a call of their own at once.
        together.wait()
        return ToolResult(f"{made.session_id} {made.ordinal}")

    house.desk.on_call = meet

    def step(name: str) -> list[StepEvent]:
        return [*house.step(call(0), call(1), ["tell", name], session_id=name)]

    names = ["a", "b", "c", "d"]
    with ThreadPoolExecutor(4) as pool:
        found = list(pool.map(step, names))
    for name, events in zip(names, found, strict=True):
        assert events == [
            ToolCallStarted(0, "look"),
            ToolCallFinished(0, "look", f"{name} 0"),
            ToolCallStarted(1, "look"),
            ToolCallFinished(1, "look", f"{name} 1"),
            TurnTaken(name),
            DONE,
        ]
    assert len(house.children) == 1


def test_threads_of_one_step_may_ask_at_once(house: Any) -> None:
    said = " ".join(f"seen {number}" for number in range(8))
    assert house.step(["threads", 8])[0] == TurnTaken(said)


def test_huge_events_and_arguments_arrive(house: Any) -> None:
    large = "y" * 5_000_000
    events = house.step(["tell_much", 20_000_000], ["call", 0, "look", {"at": large}])
    assert isinstance(events[0], TurnTaken)
    assert len(events[0].text) == 20_000_000
    assert house.desk.calls[0].arguments == {"at": large}


def test_results_are_cut_to_what_a_model_is_shown(house: Any) -> None:
    house.desk.on_call = lambda _call: ToolResult("z" * 1_000_000)
    finished = house.step(call(0))[1]
    assert isinstance(finished, ToolCallFinished)
    assert len(finished.content.encode()) <= MAX_RESULT_BYTES


def test_text_that_is_no_text_arrives_as_it_was(house: Any) -> None:
    odd = "a\udcff\ud83d\x00\u2028é"
    house.desk.on_call = lambda made: ToolResult(str(made.arguments["at"]))
    events = house.step(["tell", odd], ["call", 0, "look", {"at": odd}])
    assert events[0] == TurnTaken(odd)
    assert events[2] == ToolCallFinished(0, "look", odd)


def test_a_call_that_waits_for_a_person_interrupts_the_step(house: Any) -> None:
    house.desk.on_call = lambda made: ApprovalRequired(made, "it is destructive")
    _, interrupt, _ = house.step(call(0))
    assert isinstance(interrupt, InterruptRequired)
    assert interrupt.reason == "it is destructive"


def test_an_interrupt_is_told_once_also_when_the_child_dies_after_it(
    house: Any, tmp_path: Path
) -> None:
    house.desk.on_call = lambda made: ApprovalRequired(made, "why")
    events = house.step(call(0), ["die_once", str(tmp_path / "mark")])
    kinds = [type(event) for event in events]
    assert kinds == [ToolCallStarted, InterruptRequired, WorkerProgress]
    assert len(house.desk.calls) == 1


def test_a_refused_claim_reaches_the_step(house: Any) -> None:
    house.purse.is_empty = True
    assert house.step(["reply", "r0"])[0] == BudgetRefused(Cap.TASK_TOKENS, "there is nothing left")


@pytest.mark.parametrize(
    "fault",
    [LedgerConflictError("k" * 64, "odd"), SandboxError("gone"), CancelledError("stop")],
)
def test_what_a_call_raises_reaches_the_engine_and_ends_the_step_in_the_child(
    house: Any, fault: LoopctlError
) -> None:
    def fail(_: ToolCall) -> Waiting:
        raise fault

    house.desk.on_call = fail
    with pytest.raises(type(fault)) as caught:
        house.step(call(0), call(1))
    assert caught.value is fault
    assert len(house.desk.calls) == 1
    house.desk.on_call = lambda _call: None
    assert house.step(call(0)) == [*called(0), DONE]
    assert len(house.children) == 1


def test_a_server_of_tools_that_cannot_be_had_is_the_machines_fault(house: Any) -> None:
    def fail() -> None:
        raise EnvironmentFaultError("no server")

    house.desk.on_open = fail
    assert house.step(call(0)) == [
        OutputTail(1, "no server", is_environment=True),
        WorkerProgress(made_tool_calls=False, tool_calls_errored=False, response_delta_hash=""),
    ]


@pytest.mark.parametrize("call", [["foreign_call", "s2", 1], ["foreign_call", "s1", 2]])
def test_a_call_under_another_steps_name_is_not_made(house: Any, call: list[Any]) -> None:
    with pytest.raises(LedgerConflictError, match="belongs to another step"):
        house.step(call)
    assert house.desk.calls == []


def test_an_ordinal_is_good_for_one_call_alone(house: Any) -> None:
    with pytest.raises(LedgerConflictError, match="ordinal was used for another call"):
        house.step(call(0), ["call", 0, "look", {"at": 5}])
    assert len(house.desk.calls) == 1


def test_another_reply_under_a_number_is_refused(house: Any) -> None:
    house.replies.keep("s1", 1, 0, "other")
    with pytest.raises(CheckpointConflictError):
        house.step(["reply", "r0"])


def test_what_was_not_reserved_in_the_step_cannot_be_settled(house: Any) -> None:
    tail, _ = house.step(["settle_foreign"])
    assert isinstance(tail, OutputTail)
    assert tail.is_environment
    assert house.purse.settled == {}


def test_closing_the_step_ends_it_in_the_child(house: Any) -> None:
    events = house.begin(["tell", "a"], call(0), ["tell", "b"])
    assert isinstance(events, Generator)
    assert next(events) == TurnTaken("a")
    assert next(events) == ToolCallStarted(0, "look")
    events.close()
    assert house.desk.calls == []
    assert house.step(call(0)) == [*called(0), DONE]
    assert len(house.children) == 1


def test_what_was_on_its_way_when_a_step_was_ended_is_settled(house: Any) -> None:
    events = house.begin(["late_settle"])
    assert next(events) == TurnTaken("asking")
    events.close()
    assert house.purse.settled == {1: Usage(3, 1, 0.125)}


def test_a_persons_stop_raises_after_the_step_was_ended(house: Any) -> None:
    events = house.begin(["late_settle"])
    assert next(events) == TurnTaken("asking")
    house.cancel.set()
    with pytest.raises(CancelledError, match="asked to stop"):
        next(events)
    assert house.purse.settled == {1: Usage(3, 1, 0.125)}
    with pytest.raises(CancelledError):
        house.step(["tell", "more"])


def test_a_step_that_outlasts_its_tasks_time_is_ended(make: Callable[..., Any]) -> None:
    house = make(grace_s=0.0)
    budget = Budget(wall_ms=900, wall_max_ms=1000)
    house.worker.warm()
    tail = house.step(["late_settle"], budget=budget)[-2]
    assert isinstance(tail, OutputTail)
    assert not tail.is_environment
    assert "wall_s" in tail.text


def test_the_child_knows_the_routes_and_the_tools(house: Any) -> None:
    house.worker.warm()
    (about, _) = house.step(["about"])
    assert about == TurnTaken(f"routes {house.children[0].pid} ['look']")


def test_after_the_end_of_the_run_nothing_is_started(house: Any) -> None:
    house.process.close()
    with pytest.raises(CancelledError):
        house.step(["tell", "a"])
    assert house.children == []


def test_worker_makes_plans_and_keeps_nothing_of_a_step(house: Any) -> None:
    worker = house.worker
    before = dict(vars(worker))
    list(worker.execute_step(house.request(["reply", "r0"], call(0)), house.sandbox))
    assert worker.makes_plans
    assert vars(worker) == before
