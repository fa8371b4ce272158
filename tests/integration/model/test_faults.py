import logging
import re
import socket
from dataclasses import dataclass
from typing import Any

import pytest

from loopctl.domain import Usage
from loopctl.testing import (
    CutOff,
    Garbled,
    HangUp,
    HttpError,
    NoChoices,
    Play,
    ScriptedCall,
    ScriptedReply,
    Silence,
    overflow,
    rate_limited,
    wrong_key,
)
from loopctl.worker.model.patience import Patience
from loopctl.worker.model.reply import Overflow, Reply, Unavailable

CALL = ScriptedReply(
    "I edit.", (ScriptedCall("edit", {"path": "a.py"}), ScriptedCall("edit", "{}"))
)
OK = ScriptedReply("fine", usage=(100, 10))


@dataclass(frozen=True)
class Case:
    """A fault for ever: what comes of it, after how many requests, and what it says to do."""

    play: Play
    result: type
    says: str
    requests: int = 3
    is_billed: bool = False


FAULTS = {
    "429": Case(rate_limited(), Unavailable, "limits its rate .*wait, or name a fallback"),
    "429 without credit": Case(
        HttpError(429, "You exceeded your current quota", "insufficient_quota"),
        Unavailable,
        "account behind SCRIPTED_KEY has no credit left; add some",
        1,
    ),
    "500": Case(HttpError(500), Unavailable, "status 500 .*see whether the provider is well"),
    "502": Case(HttpError(502), Unavailable, "status 502", is_billed=True),
    "503": Case(HttpError(503, "over {key}"), Unavailable, r"status 503 \(over \[key\]\)"),
    "529": Case(HttpError(529), Unavailable, "status 529"),
    "400": Case(HttpError(400, "no {key}"), Unavailable, "refused the request .*call tools", 2),
    "401": Case(wrong_key(), Unavailable, r"refused the key in SCRIPTED_KEY .*set a valid one", 1),
    "402": Case(HttpError(402), Unavailable, "no credit left", 1),
    "403": Case(HttpError(403), Unavailable, "refused the key in SCRIPTED_KEY", 1),
    "404": Case(HttpError(404), Unavailable, "is not there .*correct its name", 1),
    "too long": Case(overflow(), Overflow, "does not fit openai/scripted: .*4096 tokens", 1),
    "too long, llama.cpp": Case(
        HttpError(400, "the request exceeds the available context size, try increasing it"),
        Overflow,
        "does not fit",
        1,
    ),
    "too long, 413": Case(HttpError(413, "Prompt is too long"), Overflow, "does not fit", 1),
    "silence": Case(Silence(), Unavailable, "did not answer in time", is_billed=True),
    "broken stream": Case(CutOff(CALL), Unavailable, "broke off|connection", is_billed=True),
    "short stream": Case(CutOff(CALL, is_clean=True), Unavailable, "broke", is_billed=True),
    "no JSON": Case(Garbled(), Unavailable, "openai/scripted .*provider is well", is_billed=True),
    "hang-up": Case(HangUp(), Unavailable, "connection to .* broke", is_billed=True),
    "no choices": Case(NoChoices(), Reply, "", is_billed=True),
    "nothing said": Case(ScriptedReply(), Reply, "", 2, is_billed=True),
    "refusal": Case(ScriptedReply(refusal="I will not."), Reply, "I will not.", 2, is_billed=True),
    "broken arguments": Case(
        ScriptedReply("x", (ScriptedCall("edit", '{"pa'),)), Reply, "x", 1, is_billed=True
    ),
}


@pytest.mark.parametrize("name", FAULTS)
def test_fault_ends_in_its_value_within_its_bounds_and_says_what_to_do(
    name: str, bench: Any, caplog: pytest.LogCaptureFixture, capfd: pytest.CaptureFixture[str]
) -> None:
    case = FAULTS[name]
    caplog.set_level(logging.DEBUG)
    bench.patience = Patience(tries=3, request_s=1 if name == "silence" else 20)
    result: Any = bench.complete(case.play)
    kind: type = type(result)
    assert kind is case.result
    text = result.text if isinstance(result, Reply) else result.reason
    assert re.search(case.says, text), text
    assert "\n" not in text
    assert len(bench.bodies) == case.requests
    assert len(bench.stop.waits) <= 2
    assert (bench.till.spent.prompt_tokens > 0) is case.is_billed
    told = [repr(result), caplog.text, *capfd.readouterr()]
    assert [line for line in told if bench.env["SCRIPTED_KEY"] in line] == []


@pytest.mark.parametrize("name", FAULTS)
def test_work_goes_on_once_a_passing_fault_has_passed(name: str, bench: Any) -> None:
    case = FAULTS[name]
    bench.patience = Patience(tries=3, request_s=1 if name == "silence" else 20)
    result = bench.complete(case.play, CALL)
    if case.requests == 3:
        assert result.text == "I edit."
        assert [(call.name, call.arguments) for call in result.calls] == [
            ("edit", '{"path": "a.py"}'),
            ("edit", "{}"),
        ]
        assert result.usage == bench.till.spent


def test_waits_double_and_end_at_a_limit(bench: Any) -> None:
    bench.patience = Patience(tries=9)
    bench.complete(HttpError(500))
    assert bench.stop.waits == [1, 2, 4, 8, 16, 32, 60, 60]


def test_retry_after_is_honoured_in_all_its_forms(bench: Any) -> None:
    bench.patience = Patience(tries=9)
    forms = [
        rate_limited("7"),
        rate_limited("Fri, 02 Jan 2026 03:05:05 GMT"),
        HttpError(429, headers={"Retry-After-Ms": "2500"}),
        HttpError(503, headers={"Retry-After": "100"}),
        rate_limited("0"),
        rate_limited("nan"),
        rate_limited("soon"),
    ]
    assert bench.complete(*forms, OK).text == "fine"
    # The clock stands at 03:04:12 when the date is read.
    assert bench.stop.waits == [7, 53, 2.5, 100, 16, 32, 60]


def test_wait_that_would_take_too_long_is_not_begun(bench: Any) -> None:
    result = bench.complete(rate_limited("86400"))
    assert isinstance(result, Unavailable)
    assert (bench.stop.waits, len(bench.bodies)) == ([], 1)


def test_all_waits_together_are_bounded(bench: Any) -> None:
    bench.patience = Patience(tries=100, total_s=100)
    bench.complete(HttpError(500))
    assert sum(bench.stop.waits) <= 100


def test_refused_connection_names_the_address_without_its_password(bench: Any) -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
    result = bench.ask(bench.attempt(url=f"http://me:hunter22@127.0.0.1:{port}/v1"))
    assert f"nothing listens at http://127.0.0.1:{port}/v1" in result.reason
    assert "hunter22" not in result.reason
    assert bench.till.spent == Usage()
    assert len(bench.till.claims) == 3


def test_address_where_nothing_listens_is_soon_given_up(bench: Any) -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
    bench.patience = Patience()
    result = bench.ask(bench.attempt(url=f"http://127.0.0.1:{port}/v1"))
    assert result.reason.endswith("start the server, or correct api_base")
    assert bench.stop.waits == [1, 2]


def test_unknown_host_is_told(bench: Any) -> None:
    result = bench.ask(bench.attempt(url="http://no-such-host.invalid/v1"))
    assert "the host of http://no-such-host.invalid/v1 is not found" in result.reason


def test_model_string_without_a_provider_is_told(bench: Any) -> None:
    result = bench.ask(bench.attempt(model="nobody/knows"))
    assert result.reason.startswith("nobody/knows names no known provider; write it as")
    assert bench.bodies == []


@pytest.mark.parametrize("model", ["anthropic/claude-opus-5-5", "gemini/gemini-pro-latest"])
def test_faults_of_other_apis_are_told_apart_too(model: str, bench: Any) -> None:
    def told(*script: Play) -> Any:
        url = bench.serve(*script, every_path=True).url
        return bench.ask(bench.attempt(url=url, model=model))

    limited = told(rate_limited("7"))
    assert bench.stop.waits == [7, 7]
    assert "limits its rate (Rate limit reached)" in limited.reason
    assert bench.till.spent == Usage()
    assert "refused the key in SCRIPTED_KEY" in told(wrong_key()).reason
    long = "prompt is too long: 300000 tokens > 200000 maximum"
    assert isinstance(told(HttpError(400, long)), Overflow)
    assert "connection to" in told(HangUp()).reason
    assert bench.till.spent.prompt_tokens > 0
