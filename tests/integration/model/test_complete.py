import threading
from pathlib import Path
from typing import Any

import pytest

from loopctl.calls import ToolSpec
from loopctl.domain import Limits, Usage
from loopctl.errors import CancelledError
from loopctl.moneyports import Cap, Claim, Refused, Reserved
from loopctl.testing import (
    ChatRequest,
    HttpError,
    Play,
    ScriptedCall,
    ScriptedReply,
    rate_limited,
    wrong_key,
)
from loopctl.worker.model.patience import Patience
from loopctl.worker.model.reply import NoMoney, Reply, Unavailable

OK = ScriptedReply("fine", usage=(100, 10))
USD = (100 * 1.0 + 10 * 10.0) / 1_000_000


# --- money -------------------------------------------------------------------------------------


def test_worst_case_is_put_aside_before_the_request_and_the_cost_settled_after(bench: Any) -> None:
    reserved_at: list[int] = []

    def script(request: ChatRequest) -> Play:
        reserved_at.append(len(bench.till.claims))
        assert bench.till.settled == {}
        return OK

    model = bench.asking(by=script)
    model.complete("cheap", [{"role": "user", "content": "hi"}], [], purpose="step")
    (claim,) = bench.till.claims
    assert reserved_at == [1]
    assert (claim.run_id, claim.task, claim.purpose) == ("run-1", "T1", "step")
    assert (claim.model, claim.caps) == ("openai/scripted", Limits(tokens=1000))
    prompt = claim.tokens - 50
    assert 0 < prompt < 50
    assert claim.usd == pytest.approx((prompt * 1.0 + 50 * 10.0) / 1_000_000)
    assert bench.till.settled == {1: Usage(100, 10, USD)}


def test_prompt_is_counted_with_its_tools(bench: Any) -> None:
    tool = ToolSpec("t", "word " * 500, {"type": "object", "properties": {}})
    model = bench.asking(OK)
    hi = [{"role": "user", "content": "hi"}]
    model.complete("cheap", hi, [], purpose="step")
    model.complete("cheap", hi, [tool], purpose="step")
    without, with_tool = (claim.tokens for claim in bench.till.claims)
    assert with_tool - without >= 500


def test_usage_that_is_not_reported_is_counted(bench: Any) -> None:
    reply = bench.complete(ScriptedReply("one two three four", usage=None))
    assert reply.usage.prompt_tokens == bench.till.claims[0].tokens - 50
    assert 0 < reply.usage.completion_tokens < 10
    assert reply.usage.usd > 0


def test_refused_money_is_handed_on_and_no_request_leaves(bench: Any) -> None:
    bench.till.refused = Refused(Cap.TASK_USD, "T1 has spent its 1.00 USD; raise budget.task_usd")
    attempt = bench.attempt(OK)
    assert bench.ask(attempt, attempt) == NoMoney(Cap.TASK_USD, bench.till.refused.reason)
    assert bench.servers[0].requests == ()


def test_each_retry_is_reserved_anew_and_can_be_refused(bench: Any) -> None:
    bench.till.refused = Refused(Cap.RUN_TOKENS, "all spent")
    bench.till.granted = 2
    assert bench.complete(HttpError(500)) == NoMoney(Cap.RUN_TOKENS, "all spent")
    assert (len(bench.bodies), len(bench.till.settled)) == (2, 2)


def test_price_that_nobody_knows_is_claimed_as_unknown(bench: Any) -> None:
    bench.ask(bench.attempt(OK, price=None))
    assert bench.till.claims[0].usd is None


def test_price_of_the_own_table_is_used_where_the_settings_have_none(bench: Any) -> None:
    reply = bench.ask(bench.attempt(OK, price=None, model="openai/gpt-6.1-sol"))
    assert 0 < reply.usage.usd < bench.till.claims[0].usd


def test_fallback_of_unknown_price_that_is_refused_is_one_model_less(bench: Any) -> None:
    class Strict:
        def reserve(self, claim: Claim) -> Reserved | Refused:
            return Refused(None, "no price") if claim.usd is None else Reserved(1)

        def settle(self, reservation: int, usage: Usage) -> None:
            pass

    bench.till = Strict()
    bench.till.open = 0
    down, unpriced, up = (
        bench.attempt(HttpError(401)),
        bench.attempt(OK, price=None),
        bench.attempt(OK),
    )
    assert bench.ask(down, unpriced, up).text == "fine"
    assert bench.ask(unpriced, up) == NoMoney(None, "no price")
    assert bench.servers[1].requests == ()


# --- fallbacks ---------------------------------------------------------------------------------


def test_fallbacks_are_tried_in_turn_and_the_reply_names_its_model(bench: Any) -> None:
    attempts = [
        bench.attempt(wrong_key(), model="openai/one"),
        bench.attempt(HttpError(500), model="openai/two"),
        bench.attempt(OK, model="openai/three"),
    ]
    reply = bench.ask(*attempts)
    assert (reply.text, reply.model) == ("fine", "openai/three")
    assert [len(server.requests) for server in bench.servers] == [1, 3, 1]


def test_when_nothing_is_left_every_model_has_its_reason(bench: Any) -> None:
    result = bench.ask(
        bench.attempt(wrong_key(), model="openai/one"),
        bench.attempt(HttpError(404), model="openai/two"),
    )
    assert isinstance(result, Unavailable)
    assert "openai/one" in result.reason
    assert "openai/two" in result.reason


def test_fallback_is_still_asked_when_the_time_for_waits_is_over(bench: Any) -> None:
    bench.patience = Patience(total_s=5)
    assert bench.ask(bench.attempt(rate_limited("60")), bench.attempt(OK)).text == "fine"
    assert bench.stop.waits == []


def test_tier_that_nothing_serves_is_told(bench: Any) -> None:
    model = bench.asking(OK)
    result = model.complete("huge", [], [], purpose="step")
    assert result == Unavailable("no model serves the tier 'huge': name it otherwise")


# --- stopping ----------------------------------------------------------------------------------


def test_stop_wakes_a_wait_and_no_further_request_leaves(bench: Any) -> None:
    bench.stop.stops_in_wait = 2
    with pytest.raises(CancelledError):
        bench.complete(rate_limited("30"))
    assert (bench.stop.waits, len(bench.bodies)) == ([30, 30], 2)


def test_stop_before_the_first_request_keeps_it_from_leaving(bench: Any) -> None:
    bench.stop.is_asked = lambda: True
    with pytest.raises(CancelledError):
        bench.complete(OK)
    assert bench.bodies == []


def test_stop_during_a_stream_ends_it_and_pays_for_what_had_come(bench: Any) -> None:
    bench.stop.is_asked = lambda: bool(bench.bodies)
    with pytest.raises(CancelledError):
        bench.complete(OK)
    assert bench.till.spent.prompt_tokens > 0


# --- what is sent ------------------------------------------------------------------------------


def test_only_functions_of_ours_are_ever_sent(bench: Any) -> None:
    plays: list[Play] = [HttpError(400), HttpError(400), ScriptedReply(), HttpError(500), OK]
    bench.complete(*plays, must_call=True)
    assert len(bench.bodies) == 5
    expected = {
        "model",
        "messages",
        "max_tokens",
        "tools",
        "tool_choice",
        "stream",
        "stream_options",
    }
    for body in bench.bodies:
        assert set(body) <= expected
        assert [tool["type"] for tool in body["tools"]] == ["function"]
        assert [tool["function"]["name"] for tool in body["tools"]] == ["edit"]
        assert body["max_tokens"] == 50
        assert body.get("tool_choice") in {None, "required"}


def test_source_asks_for_no_tool_that_a_provider_runs() -> None:
    words = (
        "web_search",
        "google_search",
        "code_interpreter",
        "computer_use",
        "mcp_servers",
        '"mcp"',
        "extra_body",
        "url_context",
        "code_execution",
        "file_search",
        "bash_20",
    )
    folder = Path(__file__).parents[3] / "src/loopctl/worker/model"
    sources = {path.name: path.read_text(encoding="utf-8") for path in folder.glob("*.py")}
    assert len(sources) > 10
    assert [(n, word) for n, text in sources.items() for word in words if word in text] == []


def test_reply_must_call_where_the_provider_can_be_told_so(bench: Any) -> None:
    bench.complete(OK, must_call=True)
    assert [body["tool_choice"] for body in bench.bodies] == ["required"]


def test_provider_that_knows_no_forced_calls_is_asked_without_from_then_on(bench: Any) -> None:
    def script(request: ChatRequest) -> Play:
        return HttpError(400, "tool_choice") if "tool_choice" in request.body else OK

    model = bench.asking(by=script)
    hi = [{"role": "user", "content": "hi"}]
    bench_tools = [ToolSpec("t", "d", {"type": "object", "properties": {}})]
    for _ in range(2):
        assert isinstance(
            model.complete("cheap", hi, bench_tools, purpose="step", must_call=True), Reply
        )
    assert ["tool_choice" in body for body in bench.bodies] == [True, False, False]
    assert bench.stop.waits == []


def test_provider_that_cannot_stream_is_asked_for_whole_replies(bench: Any) -> None:
    def script(request: ChatRequest) -> Play:
        return HttpError(400) if request.is_streamed else OK

    model = bench.asking(by=script)
    reply = model.complete("cheap", [{"role": "user", "content": "hi"}], [], purpose="step")
    assert reply.text == "fine"
    assert reply.usage == Usage(100, 10, USD)


def test_text_that_is_no_utf8_can_be_sent(bench: Any) -> None:
    model = bench.asking(OK)
    messages = [{"role": "user", "content": "caf\udce9 <|endoftext|> \x00"}]
    assert model.complete("cheap", messages, [], purpose="step").text == "fine"
    assert bench.bodies[0]["messages"][0]["content"] == "caf? <|endoftext|> \x00"


def test_key_goes_to_its_own_endpoint_and_is_read_for_each_request(bench: Any) -> None:
    model = bench.asking(OK)
    hi = [{"role": "user", "content": "hi"}]
    model.complete("cheap", hi, [], purpose="step")
    bench.env["SCRIPTED_KEY"] = "sk-renewed"
    model.complete("cheap", hi, [], purpose="step")
    keys = [request.key for request in bench.servers[0].requests]
    assert keys == ["sk-canary/0123456789", "sk-renewed"]


def test_no_key_of_the_environment_is_sent_where_none_is_named(
    bench: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", "sk-not-for-them")
    bench.ask(bench.attempt(OK, key_name=None))
    assert [request.key for request in bench.servers[0].requests] == ["none"]


def test_limit_of_a_question_is_sent_and_reserved(bench: Any) -> None:
    model = bench.asking(OK).limited(7)
    model.complete("cheap", [{"role": "user", "content": "hi"}], [], purpose="step")
    assert bench.bodies[0]["max_tokens"] == 7
    assert bench.till.claims[0].tokens < 50


def test_calls_that_share_an_index_or_an_id_are_kept_apart(bench: Any) -> None:
    calls = [ScriptedCall("edit", {"n": n}, id="") for n in range(3)]
    reply = bench.complete(ScriptedReply(calls=calls))
    assert [call.arguments for call in reply.calls] == ['{"n": 0}', '{"n": 1}', '{"n": 2}']
    assert (reply.finish, reply.text) == ("tool_calls", "")


def test_reply_that_was_cut_by_its_limit_says_so_and_is_not_asked_for_again(bench: Any) -> None:
    reply = bench.complete(ScriptedReply("", finish="length"))
    assert (reply.finish, len(bench.bodies)) == ("length", 1)


def test_one_model_serves_many_threads(bench: Any) -> None:
    model = bench.asking(by=lambda request: ScriptedReply(str(request.messages[0]["content"])))
    found: dict[str, str] = {}

    def ask(word: str) -> None:
        hi = [{"role": "user", "content": word}]
        found[word] = model.complete("cheap", hi, [], purpose="step").text

    threads = [threading.Thread(target=ask, args=(f"w{n}",)) for n in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(60)
    assert found == {f"w{n}": f"w{n}" for n in range(8)}
