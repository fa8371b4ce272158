"""The tool proxy over a real ledger: each effect at most once, and the policy first."""

import threading
from dataclasses import replace
from datetime import timedelta
from typing import Any

import pytest

from loopctl.calls import (
    MAX_RESULT_BYTES,
    Action,
    ApprovalRequired,
    Effect,
    Outcome,
    OutcomeUnknown,
    Ruling,
    ToolCall,
    ToolResult,
)
from loopctl.domain import DecisionKind
from loopctl.errors import CancelledError, LedgerConflictError

SINCE = "2026-01-02T03:04:05.000Z"


def rows(process: Any) -> list[tuple[str, ...]]:
    found: list[tuple[str, ...]] = process.rows("SELECT state FROM calls ORDER BY ordinal")
    return found


def test_duplicate_is_answered_with_the_recorded_result(house: Any, sink: Any) -> None:
    process, tool = house.process(), sink()
    proxy = process.proxy(house.session, {"send": tool})
    first = proxy.call(house.call(to="a"))
    assert first == ToolResult("did {'to': 'a'}")
    assert proxy.call(house.call(to="a")) == replace(first, replayed=True)
    assert tool.keys == [house.call(to="a").key]
    assert [(event.type, event.task, event.ordinal) for event in process.log.events] == [
        ("call_finished", "T1", 0),
        ("call_replayed", "T1", 0),
    ]


def test_same_ordinal_with_other_arguments_is_an_error_and_runs_nothing(
    house: Any, sink: Any
) -> None:
    process, tool = house.process(), sink()
    proxy = process.proxy(house.session, {"send": tool})
    proxy.call(house.call(to="a"))
    with pytest.raises(LedgerConflictError):
        proxy.call(house.call(to="b"))
    assert len(tool.keys) == 1


def test_equal_calls_of_different_ordinals_both_happen(house: Any, sink: Any) -> None:
    tool = sink()
    proxy = house.process().proxy(house.session, {"send": tool})
    for ordinal in range(3):
        proxy.call(house.call(ordinal, to="a"))
    assert len(set(tool.keys)) == 3


@pytest.mark.parametrize("effect", [Effect.NONE, Effect.INSIDE])
def test_what_only_reads_or_is_undone_with_the_step_runs_again_with_the_same_key(
    house: Any, sink: Any, effect: Effect
) -> None:
    process, tool = house.process(), sink(effect=effect)
    proxy = process.proxy(house.session, {"send": tool})
    assert proxy.call(house.call()) == proxy.call(house.call())
    assert tool.keys == [house.call().key] * 2
    assert (rows(process), process.log.events) == ([], [])


def test_call_that_cannot_be_made_is_an_error_for_the_worker(house: Any, sink: Any) -> None:
    process, tool = house.process(), sink()
    proxy = process.proxy(house.session, {"send": tool})
    for call, words in (
        (house.call(tool="post"), "there is no tool post; there are: send"),
        (house.call(x=float("nan")), "no JSON"),
        (ToolCall(house.session.id, 1, 0, "send", {1: 2}), "no JSON"),  # type: ignore[dict-item]
        (house.call(x={1, 2}), "no JSON"),
    ):
        found = proxy.call(call)
        assert isinstance(found, ToolResult)
        assert found.is_error
        assert words in found.content
    assert (tool.keys, rows(process)) == ([], [])


def test_call_of_another_session_is_refused(house: Any, sink: Any) -> None:
    process, tool = house.process(), sink()
    proxy = process.proxy(house.session, {"send": tool})
    with pytest.raises(LedgerConflictError, match="belongs to session r1/T2/main"):
        proxy.call(ToolCall("r1/T2/main", 1, 0, "send", {}))
    assert tool.keys == []


@pytest.mark.parametrize("effect", Effect)
def test_denied_call_fails_closed_and_leaves_the_ledger_alone(
    house: Any, sink: Any, effect: Effect
) -> None:
    process, tool = house.process(), sink(effect=effect)
    seen: list[ToolCall] = []

    def policy(call: ToolCall) -> Ruling:
        seen.append(call)
        return Ruling(Action.DENY, "it costs money")

    proxy = process.proxy(house.session, {"send": tool}, policy)
    assert proxy.call(house.call()) == ToolResult("send was denied: it costs money", is_error=True)
    assert (tool.keys, rows(process), seen) == ([], [], [house.call()])


def test_policy_that_breaks_runs_nothing(house: Any, sink: Any) -> None:
    process, tool = house.process(), sink()

    def policy(call: ToolCall) -> Ruling:
        raise OSError(call.tool)

    with pytest.raises(OSError, match="send"):
        process.proxy(house.session, {"send": tool}, policy).call(house.call())
    assert (tool.keys, rows(process)) == ([], [])


# --- approvals ---------------------------------------------------------------------------------


def asks(call: ToolCall) -> Ruling:
    return Ruling(Action.APPROVE, f"{call.tool} cannot be undone")


def token(house: Any, process: Any, call: ToolCall) -> str:
    decision = house.ask(process, DecisionKind.APPROVAL, call)
    granted: str = process.calls.grant(decision, call, timedelta(hours=1))
    return granted


@pytest.mark.parametrize("effect", Effect)
def test_call_that_needs_approval_waits_and_happens_once_with_it(
    house: Any, sink: Any, effect: Effect
) -> None:
    process, tool, call = house.process(), sink(effect=effect), house.call(a=1)
    proxy = process.proxy(house.session, {"send": tool}, asks)
    assert proxy.call(call) == ApprovalRequired(call, "send cannot be undone")
    assert (tool.keys, rows(process)) == ([], [])
    approval = token(house, process, call)
    result = proxy.call(call, approval)
    assert result == ToolResult("did {'a': 1}")
    # The duplicate delivery of the resume, with and without its token.
    assert proxy.call(call, approval) == proxy.call(call) == ToolResult("did {'a': 1}", False, True)  # noqa: FBT003 - a value
    assert tool.keys == [call.key]


def test_approval_of_one_call_is_refused_for_another(house: Any, sink: Any) -> None:
    process, tool = house.process(), sink()
    proxy = process.proxy(house.session, {"send": tool}, asks)
    approval = token(house, process, house.call(0))
    found = proxy.call(house.call(1), approval)
    assert found == ApprovalRequired(house.call(1), "its approval is for another call")
    assert tool.keys == []


def test_approval_stands_when_the_approved_call_surely_did_not_happen(
    house: Any, sink: Any, kill_at: Any, revive: Any
) -> None:
    tool, call = sink(is_probeable=True), house.call()
    process = house.process()
    approval = token(house, process, call)
    with pytest.raises(kill_at("proxy.before_effect")):
        process.proxy(house.session, {"send": tool}, asks).call(call, approval)
    process.die()
    revive()
    found = house.process().proxy(house.session, {"send": tool}, asks).call(call)
    assert isinstance(found, ToolResult)
    assert tool.keys == [call.key]


# --- outcomes ----------------------------------------------------------------------------------


@pytest.mark.parametrize("point", ["ledger.after_intent", "proxy.before_effect"])
def test_effect_that_did_not_happen_before_a_crash_is_made_after_a_probe(
    house: Any, sink: Any, kill_at: Any, revive: Any, point: str
) -> None:
    tool = sink(is_probeable=True)
    process = house.process()
    with pytest.raises(kill_at(point)):
        process.proxy(house.session, {"send": tool}).call(house.call())
    process.die()
    revive()
    again = house.process()
    assert again.proxy(house.session, {"send": tool}).call(house.call()) == ToolResult("did {}")
    assert (len(tool.keys), rows(again)) == (1, [("done",)])


@pytest.mark.parametrize("point", ["proxy.after_effect", "ledger.before_done"])
def test_effect_that_happened_before_a_crash_is_found_by_the_probe(
    house: Any, sink: Any, kill_at: Any, revive: Any, point: str
) -> None:
    tool = sink(is_probeable=True)
    process = house.process()
    with pytest.raises(kill_at(point)):
        process.proxy(house.session, {"send": tool}).call(house.call())
    process.die()
    revive()
    again = house.process()
    found = again.proxy(house.session, {"send": tool}).call(house.call())
    assert found == ToolResult("did {}", replayed=True)
    assert (len(tool.keys), rows(again)) == (1, [("done",)])
    assert [(event.type, event.source) for event in again.log.events] == [
        ("call_replayed", "probe")
    ]


@pytest.mark.parametrize(
    "point",
    ["ledger.after_intent", "proxy.before_effect", "proxy.after_effect", "ledger.before_done"],
)
def test_effect_that_cannot_be_probed_is_never_run_again_by_itself(
    house: Any, sink: Any, kill_at: Any, revive: Any, point: str
) -> None:
    tool, call = sink(), house.call()
    process = house.process()
    with pytest.raises(kill_at(point)):
        process.proxy(house.session, {"send": tool}).call(call)
    process.die()
    revive()
    before = list(tool.keys)
    for _ in range(3):
        again = house.process()
        assert again.proxy(house.session, {"send": tool}).call(call) == OutcomeUnknown(call, SINCE)
        again.die()
    assert tool.keys == before


def test_tool_that_lost_sight_of_its_effect_is_probed_and_else_unknown(
    house: Any, sink: Any
) -> None:
    process = house.process()
    found, lost = sink(fails=Outcome.UNKNOWN, is_probeable=True), sink(fails=Outcome.UNKNOWN)
    proxy = process.proxy(house.session, {"found": found, "lost": lost})
    assert proxy.call(house.call(0, "found")) == ToolResult("did {}")
    assert proxy.call(house.call(1, "lost")) == OutcomeUnknown(house.call(1, "lost"), SINCE)
    assert proxy.call(house.call(1, "lost")) == OutcomeUnknown(house.call(1, "lost"), SINCE)
    assert (len(found.keys), len(lost.keys), rows(process)) == (1, 1, [("done",), ("unknown",)])


def test_tool_that_surely_did_nothing_may_be_called_again(house: Any, sink: Any) -> None:
    process, tool = house.process(), sink(fails=Outcome.ABSENT)
    proxy = process.proxy(house.session, {"send": tool})
    found = proxy.call(house.call())
    assert isinstance(found, ToolResult)
    assert (found.is_error, rows(process)) == (True, [])
    tool.fails = None
    assert proxy.call(house.call()) == ToolResult("did {}")


def test_tool_that_raises_leaves_an_unknown_outcome(house: Any, sink: Any) -> None:
    process, tool = house.process(), sink(fails=CancelledError())
    proxy = process.proxy(house.session, {"send": tool})
    with pytest.raises(CancelledError):
        proxy.call(house.call())
    tool.fails = None
    assert proxy.call(house.call()) == OutcomeUnknown(house.call(), SINCE)
    assert tool.keys == []


def test_failure_that_a_tool_reports_is_its_recorded_result(house: Any, sink: Any) -> None:
    process = house.process()

    class Failing(sink):  # type: ignore[misc]
        def run(self, arguments: Any, idempotency_key: str) -> ToolResult:
            del arguments
            self.keys.append(idempotency_key)
            return ToolResult("404", is_error=True)

    tool = Failing()
    proxy = process.proxy(house.session, {"send": tool})
    assert proxy.call(house.call()) == ToolResult("404", is_error=True)
    assert proxy.call(house.call()) == ToolResult("404", is_error=True, replayed=True)
    assert len(tool.keys) == 1


def test_first_answer_and_replay_are_cut_alike(house: Any, sink: Any) -> None:
    tool = sink()
    proxy = house.process().proxy(house.session, {"send": tool})
    call = house.call(text="x" * 2 * MAX_RESULT_BYTES)
    first, again = proxy.call(call), proxy.call(call)
    assert isinstance(first, ToolResult)
    assert replace(first, replayed=True) == again
    assert "bytes left out" in first.content


def test_threads_at_the_same_call_make_it_once_and_all_get_its_result(
    house: Any, sink: Any
) -> None:
    process, tool = house.process(), sink()
    proxy = process.proxy(house.session, {"send": tool})
    barrier = threading.Barrier(8)
    got: list[Any] = []

    def call() -> None:
        barrier.wait(20)
        got.append(proxy.call(house.call()))

    threads = [threading.Thread(target=call) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(20)
    assert len(tool.keys) == 1
    assert [result.content for result in got] == ["did {}"] * 8
    assert sorted(result.replayed for result in got) == [False] + [True] * 7
