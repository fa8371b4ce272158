"""Replies that cannot be used, and models that cannot be had."""

import json
from dataclasses import replace
from typing import Any

import pytest

from loopctl.calls import ToolCall, ToolResult
from loopctl.domain import Usage
from loopctl.moneyports import Cap
from loopctl.past import Past, Turn
from loopctl.plan import Budget
from loopctl.steps import (
    BudgetRefused,
    OutputTail,
    TodoDone,
    TurnTaken,
    UsageReported,
    WorkerProgress,
)
from loopctl.testing import StillClock
from loopctl.testing.steps import ScriptedDoor, calling
from loopctl.worker.graph.ends import ROUNDS, WRONG_TRIES
from loopctl.worker.graph.prompt import LEVELS
from loopctl.worker.model.reply import AskedCall, NoMoney, Overflow, Reply, Unavailable

DONE = calling(("todo_done", {"summary": "written"}))
LIST = ("bash", {"command": "ls"})


def raw(*calls: tuple[str, str], finish: str = "tool_calls") -> Reply:
    return Reply("", tuple(AskedCall("x", *call) for call in calls), Usage(1, 1), finish=finish)


WRONG = [
    (raw(("bash", '{"command": ')), "are no JSON"),
    (raw(("bash", '["ls"]')), "no JSON object"),
    (raw(("bash", '{"command": NaN}')), "NaN is no JSON"),
    (raw(("bash", "[" * 100_000)), "are no JSON"),
    (raw(("bash", "9" * 5000)), "are no JSON"),
    (raw(("bash", "")), "'command' is a required property"),
    (raw(("bash", '{"command": 1}')), "at ['command']: 1 is not of type 'string'"),
    (raw(("rm", "{}")), "there is no tool 'rm' here; there are: bash, read_file"),
    (raw(("", "{}")), "there is no tool '' here"),
    (raw(("b\nash\ud800", "{}")), "there is no tool 'b ash?' here"),
]


@pytest.mark.parametrize(("reply", "error"), WRONG)
def test_wrong_call_goes_back_as_its_error_and_touches_nothing(
    play: Any, reply: Reply, error: str
) -> None:
    played = play(reply, DONE)

    assert error in played.told()[0]
    assert played.door.trace == ["keep 0", "keep 1"]
    assert played.only(WorkerProgress).tool_calls_errored
    assert played.only(TodoDone)


@pytest.mark.parametrize(("reply", "error"), WRONG)
def test_wrong_call_is_echoed_in_a_form_that_every_provider_takes(
    play: Any, reply: Reply, error: str
) -> None:
    messages = play(reply, DONE).model.asked[-1].messages

    (call,) = next(m["tool_calls"] for m in messages if "tool_calls" in m)
    assert isinstance(json.loads(call["function"]["arguments"]), dict)
    assert call["function"]["name"].replace("_", "").isalnum()


def test_wrong_call_does_not_keep_its_siblings_from_being_made(play: Any) -> None:
    played = play(raw(("rm", "{}"), ("bash", '{"command": "ls"}')), DONE)

    assert [call.ordinal for call in played.door.calls] == [1]


@pytest.mark.parametrize("reply", [raw(("rm", "{}")), raw(("bash", "{")), Reply("  ")])
def test_three_useless_replies_in_a_row_end_the_step_without_progress(
    play: Any, reply: Reply
) -> None:
    played = play(*[reply] * WRONG_TRIES)

    assert isinstance(played.events[-1], WorkerProgress)
    assert not played.events[-1].made_tool_calls
    assert played.events[-1].tool_calls_errored
    assert f"after {WRONG_TRIES} replies in a row" in played.only(TurnTaken).text


def test_a_right_reply_between_wrong_ones_starts_the_count_again(play: Any) -> None:
    wrong = raw(("rm", "{}"))
    played = play(wrong, wrong, calling(LIST), wrong, wrong, DONE)

    assert played.only(TodoDone)


def test_step_ends_after_its_rounds(play: Any) -> None:
    played = play(*[calling(("bash", {"command": str(n)})) for n in range(ROUNDS)])

    assert len(played.door.calls) == ROUNDS
    assert f"after {ROUNDS} replies" in played.only(TurnTaken).text


@pytest.mark.parametrize(
    "budget",
    [
        Budget(tokens_used=90, tokens_max=100),
        Budget(usd_used=1.0, usd_max=1.001),
        Budget(wall_ms=500, wall_max_ms=2500),
    ],
)
def test_model_is_not_asked_again_when_the_slice_of_the_budget_is_used_up(
    play: Any, budget: Budget
) -> None:
    clock = StillClock()

    def wait(_call: ToolCall, _approval: str | None) -> ToolResult:
        clock.pass_time(2)
        return ToolResult("slow")

    played = play(
        calling(LIST, LIST), budget=budget, clock=clock, door=ScriptedDoor({"bash": wait})
    )

    assert len(played.door.calls) == 2
    assert "budget is used up" in played.only(TurnTaken).text


def test_caps_that_are_far_off_end_nothing(play: Any) -> None:
    budget = Budget(0, 9, tokens_max=1000, wall_max_ms=1000, usd_max=1.0)

    assert play(calling(LIST), DONE, budget=budget).only(TodoDone)


def test_no_money_ends_the_step_with_its_refusal(play: Any) -> None:
    played = play(calling(LIST), NoMoney(Cap.TASK_USD, "0.10 of 0.10 usd are spent"))

    assert played.names[-3:] == ["BudgetRefused", "TurnTaken", "WorkerProgress"]
    assert played.only(BudgetRefused) == BudgetRefused(Cap.TASK_USD, "0.10 of 0.10 usd are spent")


def test_no_money_at_the_first_request_leaves_no_turn(play: Any) -> None:
    played = play(NoMoney(None, "the price is unknown"))

    assert played.names == ["BudgetRefused", "WorkerProgress"]


def test_unavailable_model_is_the_machines_fault(play: Any) -> None:
    played = play(Unavailable("gpt-x: 503 five times; set a fallback"))

    assert played.names == ["OutputTail", "WorkerProgress"]
    assert played.only(OutputTail) == OutputTail(
        1, "gpt-x: 503 five times; set a fallback", is_environment=True
    )


def test_withheld_reply_is_an_observation_and_none_of_its_calls_is_made(play: Any) -> None:
    played = play(raw(("bash", '{"command": "ls"}'), finish="content_filter"))

    assert played.door.calls == []
    assert played.only(OutputTail).exit == 1
    assert not played.only(OutputTail).is_environment
    assert "content filter" in played.only(OutputTail).text
    assert not played.only(WorkerProgress).made_tool_calls
    assert "content filter" in played.only(TurnTaken).text


def test_refusal_in_words_is_what_the_step_comes_to(play: Any) -> None:
    refusal = Reply("I cannot help with that.")
    played = play(refusal, refusal)

    assert "I cannot help with that." in played.only(TurnTaken).text
    assert not played.only(WorkerProgress).made_tool_calls


def test_cut_reply_has_its_broken_call_answered_with_what_happened(play: Any) -> None:
    cut = raw(
        ("bash", '{"command": "ls"}'),
        ("write_file", '{"path": "a", "content": "lo'),
        finish="length",
    )
    played = play(cut, DONE)

    assert [call.tool for call in played.door.calls] == ["bash"]
    assert "your reply was cut at the output limit" in played.told()[1]


def test_cut_reply_without_call_is_told_that_it_was_cut(play: Any) -> None:
    played = play(Reply("So many words", finish="length"), DONE)

    assert played.told()[0].startswith("Your reply was cut at the output limit")


def test_calls_beyond_the_limit_of_one_reply_are_not_made(play: Any) -> None:
    played = play(calling(*[LIST] * 70), DONE)

    assert len(played.door.calls) == 64
    assert "may ask for 64 calls" in played.told()[-1]
    assert len(played.told()) == 65


PAST = Past(turns=tuple(Turn(n, f"turn {n}\n" + "long " * 200) for n in range(1, 9)))


def test_overflow_shortens_the_oldest_turns_and_asks_again(play: Any) -> None:
    played = play(Overflow("8193 > 8192"), calling(LIST), DONE, past=PAST)

    first, second, third = (asked.text for asked in played.model.asked)
    assert first.count("long long long long long long long long long long long long") > 8
    assert [f"(shortened) turn {n} " in second for n in range(1, 9)] == [True] * 4 + [False] * 4
    assert len(second) < 0.8 * len(first)
    # It stays as short, so that later requests share their prefix with this one.
    assert third.startswith(second)
    assert played.only(TodoDone)


def test_overflow_in_the_midst_shortens_the_oldest_results_of_the_step(play: Any) -> None:
    door = ScriptedDoor({"bash": lambda call, _a: ToolResult(f"{call.ordinal}" + "long " * 500)})
    played = play(calling(*[LIST] * 4), Overflow("too long"), DONE, door=door)

    told = played.told()
    assert [text.startswith("(shortened) <<<DATA") for text in told] == [True, True, False, False]


def test_overflow_again_and_again_ends_with_what_is_wrong(play: Any) -> None:
    played = play(*[Overflow("8193 > 8192")] * (LEVELS + 1), past=PAST)

    assert [len(asked.text) for asked in played.model.asked] == sorted(
        (len(asked.text) for asked in played.model.asked), reverse=True
    )
    assert played.names == ["OutputTail", "TurnTaken", "WorkerProgress"]
    assert played.only(OutputTail).exit == 1
    assert "8193 > 8192" in played.only(OutputTail).text
    assert "shorter prompt" in played.only(OutputTail).text


def test_usage_of_every_reply_is_told_also_of_wrong_ones(play: Any) -> None:
    played = play(raw(("rm", "{}")), Reply("", usage=Usage(2, 2)), DONE)

    assert [event.usage for event in played.of(UsageReported)] == [
        Usage(1, 1),
        Usage(2, 2),
        Usage(10, 5, 0.001),
    ]


def test_reply_with_thousands_of_calls_is_answered_once_for_what_is_too_much(play: Any) -> None:
    played = play(calling(*[LIST] * 3000), DONE)

    assert len(played.door.calls) == 64
    assert len(played.told()) == 65
    assert "what came after was not made" in played.told()[-1]


def test_id_of_a_call_that_is_far_too_long_is_replaced(play: Any) -> None:
    one = calling(LIST)
    played = play(type(one)("", (replace(one.calls[0], id="i" * 9000),)), DONE)

    assert "iii" not in played.model.asked[-1].text
