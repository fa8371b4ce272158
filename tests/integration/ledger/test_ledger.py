"""The contract of the port ``Ledger``, on a real database."""

import threading
from dataclasses import replace
from datetime import timedelta
from typing import Any

import pytest

from loopctl.calls import (
    MAX_RESULT_BYTES,
    Fresh,
    Recorded,
    ToolCall,
    ToolResult,
    Unapproved,
    Unknown,
)
from loopctl.domain import DecisionKind, Limits, RunStatus
from loopctl.errors import CallInFlightError, LedgerConflictError
from loopctl.plan import Budget, Checkpoint, single_todo
from loopctl.store.ledger import GRACE, SESSION_LIFETIME

RESULT = ToolResult("done it", is_error=False)
POINT = Checkpoint(plan=single_todo("g", "t", Budget()), tree="abc", base="c1")
LONG = SESSION_LIFETIME + GRACE


def test_first_call_is_fresh_and_its_intent_is_written(house: Any) -> None:
    process = house.process()
    assert process.ledger.reserve(house.call(a=1)) == Fresh()
    assert process.rows("SELECT state, tool, result FROM calls") == [("intent", "send", None)]


@pytest.mark.parametrize("result", [RESULT, ToolResult("no", is_error=True), ToolResult("\ud800")])
def test_finished_call_is_answered_with_its_recorded_result(house: Any, result: ToolResult) -> None:
    process, call = house.process(), house.call(a=1)
    process.ledger.reserve(call)
    process.ledger.finish(call, result)
    assert process.ledger.reserve(call) == Recorded(result)
    assert house.process().ledger.reserve(call) == Recorded(result)


@pytest.mark.parametrize("other", [{"a": 2}, {"a": 1, "b": None}, {}, {"a": 1.0}, {"a": True}])
@pytest.mark.parametrize("is_finished", [True, False])
def test_same_key_with_other_arguments_is_an_error(
    house: Any, other: dict[str, Any], *, is_finished: bool
) -> None:
    process = house.process()
    process.ledger.reserve(house.call(a=1))
    if is_finished:
        process.ledger.finish(house.call(a=1), RESULT)
    before = process.rows("SELECT * FROM calls")
    with pytest.raises(LedgerConflictError):
        process.ledger.reserve(house.call(**other))
    with pytest.raises(LedgerConflictError):
        process.ledger.reserve(house.call(tool="post", a=1))
    assert process.rows("SELECT * FROM calls") == before


def test_order_of_arguments_does_not_matter(house: Any) -> None:
    process = house.process()
    one = ToolCall(house.session.id, 1, 0, "send", {"a": 1, "b": {"x": 1, "y": 2}})
    two = ToolCall(house.session.id, 1, 0, "send", {"b": {"y": 2, "x": 1}, "a": 1})
    process.ledger.reserve(one)
    process.ledger.finish(one, RESULT)
    assert process.ledger.reserve(two) == Recorded(RESULT)


def test_intent_of_a_dead_process_is_unknown_and_stays_so(house: Any) -> None:
    process, call = house.process(), house.call()
    process.ledger.reserve(call)
    process.die()
    for _ in range(2):
        found = house.process()
        assert found.ledger.reserve(call) == Unknown("2026-01-02T03:04:05.000Z")
        assert found.rows("SELECT state FROM calls") == [("unknown",)]
        found.die()


def test_intent_of_a_living_process_is_under_way(house: Any) -> None:
    process, call = house.process(), house.call()
    process.ledger.reserve(call)
    with pytest.raises(CallInFlightError, match="under way elsewhere since 2026"):
        house.process().ledger.reserve(call)
    with pytest.raises(CallInFlightError):
        process.ledger.reserve(call)
    assert process.rows("SELECT state FROM calls") == [("intent",)]


def test_unknown_call_is_looked_into_by_one_process_at_a_time(house: Any) -> None:
    process, call = house.process(), house.call()
    process.ledger.reserve(call)
    process.die()
    first, second = house.process(), house.process()
    assert isinstance(first.ledger.reserve(call), Unknown)
    with pytest.raises(CallInFlightError):
        second.ledger.reserve(call)
    first.ledger.finish(call, RESULT)
    assert second.ledger.reserve(call) == Recorded(RESULT)


def test_lost_sight_of_a_call_is_unknown_in_the_same_process(house: Any) -> None:
    process, call = house.process(), house.call()
    process.ledger.reserve(call)
    process.ledger.finish(call, None)
    assert isinstance(process.ledger.reserve(call), Unknown)


def test_abandoned_call_may_be_made_again(house: Any) -> None:
    process, call = house.process(), house.call()
    process.ledger.reserve(call)
    process.ledger.abandon(call)
    assert process.ledger.reserve(call) == Fresh()


def test_finishing_twice_with_the_same_result_is_a_no_op_and_with_another_an_error(
    house: Any,
) -> None:
    process, call = house.process(), house.call()
    process.ledger.reserve(call)
    process.ledger.finish(call, RESULT)
    process.ledger.finish(call, RESULT)
    for result in (replace(RESULT, content="x"), replace(RESULT, is_error=True), None):
        with pytest.raises(LedgerConflictError):
            process.ledger.finish(call, result)
    with pytest.raises(LedgerConflictError):
        process.ledger.abandon(call)
    assert process.ledger.reserve(call) == Recorded(RESULT)


def test_call_of_another_process_cannot_be_finished_or_abandoned(house: Any) -> None:
    process, other, call = house.process(), house.process(), house.call()
    process.ledger.reserve(call)
    with pytest.raises(LedgerConflictError):
        other.ledger.finish(call, RESULT)
    with pytest.raises(LedgerConflictError):
        other.ledger.abandon(call)
    with pytest.raises(LedgerConflictError):
        other.ledger.finish(house.call(9), RESULT)
    assert process.rows("SELECT state FROM calls") == [("intent",)]


def test_result_is_bounded(house: Any) -> None:
    process, call = house.process(), house.call()
    process.ledger.reserve(call)
    process.ledger.finish(call, ToolResult("ä" * MAX_RESULT_BYTES))
    found = process.ledger.reserve(call)
    assert isinstance(found, Recorded)
    assert MAX_RESULT_BYTES - 50 < len(found.result.content.encode()) <= MAX_RESULT_BYTES
    assert f"[{MAX_RESULT_BYTES + 40} bytes left out]" in found.result.content


def test_one_of_many_threads_gets_the_call(house: Any) -> None:
    process, call = house.process(), house.call()
    got: list[object] = []
    barrier = threading.Barrier(8)

    def reserve() -> None:
        barrier.wait(20)
        try:
            got.append(process.ledger.reserve(call))
        except CallInFlightError:
            got.append(None)

    threads = [threading.Thread(target=reserve) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(20)
    assert sorted(map(repr, got)) == ["Fresh()"] + ["None"] * 7


# --- expiry ------------------------------------------------------------------------------------


def finished(house: Any, process: Any, state: str) -> ToolCall:
    call: ToolCall = house.call()
    process.ledger.reserve(call)
    if state != "intent":
        process.ledger.finish(call, RESULT if state == "done" else None)
    return call


@pytest.mark.parametrize("state", ["intent", "unknown", "done"])
def test_nothing_is_purged_before_it_expires(house: Any, state: str) -> None:
    process = house.process()
    finished(house, process, state)
    process.sessions.save_checkpoint(house.session.id, 1, POINT)
    process.runs.set_run_status("r1", RunStatus.COMPLETE, "now")
    assert process.ledger.purge(house.clock.now() + LONG - timedelta(seconds=1)) == 0
    assert process.ledger.purge(house.clock.now() + LONG) == 1
    assert process.rows("SELECT * FROM calls") == []


@pytest.mark.parametrize("status", [one for one in RunStatus if one is not RunStatus.COMPLETE])
@pytest.mark.parametrize("state", ["intent", "unknown"])
def test_call_without_a_result_is_never_purged_while_its_run_can_go_on(
    house: Any, state: str, status: RunStatus
) -> None:
    process = house.process()
    finished(house, process, state)
    process.sessions.save_checkpoint(house.session.id, 1, POINT)
    process.runs.set_run_status("r1", status, None)
    assert process.ledger.purge(house.clock.now() + 99 * LONG) == 0


def test_result_of_a_step_that_may_be_taken_again_is_never_purged(house: Any) -> None:
    process = house.process()
    finished(house, process, "done")
    assert process.ledger.purge(house.clock.now() + 99 * LONG) == 0
    process.sessions.save_checkpoint(house.session.id, 1, POINT)
    assert process.ledger.purge(house.clock.now() + 99 * LONG) == 1


def test_files_of_dead_owners_are_swept_and_those_of_living_ones_are_not(house: Any) -> None:
    dead, alive, looking = house.process(), house.process(), house.process()
    dead.ledger.reserve(house.call(1))
    alive.ledger.reserve(house.call(2))
    mine = alive.owners.mine
    dead.die()
    looking.ledger.purge(house.clock.now())
    assert [path.name for path in (house.local / "owners").iterdir()] == [mine]
    alive.owners.close()
    assert list((house.local / "owners").iterdir()) == []
    assert isinstance(looking.ledger.reserve(house.call(2)), Unknown)


# --- what people decide ------------------------------------------------------------------------


def unknown(house: Any, call: ToolCall) -> Any:
    process = house.process()
    process.ledger.reserve(call)
    process.die()
    again = house.process()
    again.ledger.reserve(call)
    return again


def test_answer_that_it_happened_is_its_result(house: Any) -> None:
    call = house.call()
    process = unknown(house, call)
    decision = house.ask(process, DecisionKind.OUTCOME, call)
    assert process.calls.settle(decision, call.key, ToolResult("it happened: ticket 7"))
    assert process.ledger.reserve(call) == Recorded(ToolResult("it happened: ticket 7"))


def test_answer_that_it_did_not_lets_it_run_again_once(house: Any) -> None:
    call = house.call()
    process = unknown(house, call)
    decision = house.ask(process, DecisionKind.OUTCOME, call)
    assert process.calls.settle(decision, call.key, None)
    assert process.ledger.reserve(call) == Fresh()
    process.die()
    # A second crash is a second question: the first answer says nothing of it.
    later = house.process()
    assert isinstance(later.ledger.reserve(call), Unknown)
    assert not later.calls.settle(decision, call.key, None)
    assert isinstance(later.ledger.reserve(call), Unknown)


@pytest.mark.parametrize("state", ["intent", "done"])
def test_answer_about_a_call_that_is_not_unknown_changes_nothing(house: Any, state: str) -> None:
    process = house.process()
    call = finished(house, process, state)
    decision = house.ask(process, DecisionKind.OUTCOME, call)
    before = process.rows("SELECT * FROM calls")
    assert not process.calls.settle(decision, call.key, None)
    assert process.rows("SELECT * FROM calls") == before


def test_good_approval_is_used_up_with_the_intent(house: Any) -> None:
    process, call = house.process(), house.call(a=1)
    decision = house.ask(process, DecisionKind.APPROVAL, call)
    token = process.calls.grant(decision, call, timedelta(hours=1))
    assert process.calls.grant(decision, call, timedelta(hours=9)) == token
    assert process.ledger.reserve(call, needs_approval=True, approval=token) == Fresh()
    process.ledger.abandon(call)
    assert process.ledger.reserve(call, needs_approval=True, approval=token) == Unapproved(
        "its approval was used on 2026-01-02T03:04:05.000Z"
    )
    assert process.rows("SELECT * FROM calls") == []


def test_missing_foreign_changed_and_stale_approvals_are_refused(house: Any) -> None:
    process, call = house.process(), house.call(a=1)
    decision = house.ask(process, DecisionKind.APPROVAL, call)
    token = process.calls.grant(decision, call, timedelta(hours=1))

    def refusal(call: ToolCall, token: str | None) -> str:
        found = process.ledger.reserve(call, needs_approval=True, approval=token)
        assert isinstance(found, Unapproved)
        return str(found.reason)

    assert "has to approve" in refusal(call, None)
    assert "not one of ours" in refusal(call, "0" * 64)
    other = process.sessions.open_session("r1", "T1", "second", "c1")
    changed = [
        house.call(a=2),
        house.call(tool="post", a=1),
        house.call(1, a=1),
        house.call(iteration=2, a=1),
        replace(call, session_id=other.id),
    ]
    assert {refusal(one, token) for one in changed} == {"its approval is for another call"}
    house.clock.pass_time(3600)
    assert "expired" in refusal(call, token)
    assert process.rows("SELECT used FROM approvals") == [(None,)]
    assert process.rows("SELECT * FROM calls") == []


def test_one_decision_never_approves_two_calls(house: Any) -> None:
    process = house.process()
    decision = house.ask(process, DecisionKind.APPROVAL, house.call(0))
    process.calls.grant(decision, house.call(0), timedelta(hours=1))
    with pytest.raises(LedgerConflictError, match="approved another call"):
        process.calls.grant(decision, house.call(1), timedelta(hours=1))


def test_recorded_result_needs_no_second_approval(house: Any) -> None:
    process, call = house.process(), house.call()
    decision = house.ask(process, DecisionKind.APPROVAL, call)
    token = process.calls.grant(decision, call, timedelta(hours=1))
    process.ledger.reserve(call, needs_approval=True, approval=token)
    process.ledger.finish(call, RESULT)
    assert process.ledger.reserve(call, needs_approval=True) == Recorded(RESULT)


def test_decision_about_a_call_keeps_its_key(house: Any) -> None:
    process, call = house.process(), house.call()
    decision = house.ask(process, DecisionKind.OUTCOME, call)
    assert house.ask(process, DecisionKind.OUTCOME, call) == decision
    answered = process.decisions.answer_decision(decision, "it happened", "now", Limits())
    assert answered.call_key == call.key
