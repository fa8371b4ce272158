"""The wire with a real model; it shows that requests are understood, not how clever a model is.

``LOOP_TEST_GGUF``: the path of a small instruct model in GGUF form.
``LOOP_TEST_GGUF_PYTHON``: a Python with xllamacpp 0.2.8, where this one has none.
"""

import json
import os
import subprocess
import sys
from collections.abc import Iterator
from typing import Any

import pytest

from loopctl.calls import ToolSpec
from loopctl.contextports import Answered, Question
from loopctl.worker.graph import control
from loopctl.worker.model.open import ask
from loopctl.worker.model.patience import Patience
from loopctl.worker.model.reply import Overflow, Reply

GGUF = os.environ.get("LOOP_TEST_GGUF", "")
PYTHON = os.environ.get("LOOP_TEST_GGUF_PYTHON", sys.executable)
SERVE = """
import os, sys, xllamacpp
given = xllamacpp.CommonParams()
given.model.path = sys.argv[1]
given.hostname, given.port = "127.0.0.1", 0
given.n_ctx, given.n_parallel, given.warmup = 2048, 1, False
server = xllamacpp.Server(given)
print(server.listening_address, flush=True)
sys.stdin.read()
os._exit(0)
"""
READ = ToolSpec(
    "read_file",
    "Read a file.",
    {"type": "object", "properties": {"path": {"type": "string"}}, "required": ["path"]},
)


def _has_server() -> bool:
    seen = subprocess.run(
        [PYTHON, "-c", "import xllamacpp"], capture_output=True, check=False, timeout=60
    )
    return seen.returncode == 0


pytestmark = pytest.mark.skipif(
    not os.path.exists(GGUF) or not _has_server(),  # noqa: PTH110
    reason="LOOP_TEST_GGUF names no model, or xllamacpp is not there",
)


@pytest.fixture(scope="module")
def url() -> Iterator[str]:
    server = subprocess.Popen(
        [PYTHON, "-c", SERVE, GGUF],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        text=True,
    )
    assert server.stdout is not None
    yield f"{server.stdout.readline().strip()}/v1"
    # It keeps its process after SIGTERM.
    server.kill()
    server.communicate(timeout=60)


@pytest.fixture
def attempt(bench: Any, url: str) -> Any:
    bench.patience = Patience(tries=2, request_s=120)
    return bench.attempt(url=url, max_output_tokens=64)


def test_reply_comes_with_its_usage(bench: Any, attempt: Any) -> None:
    hi = [{"role": "user", "content": "Say hello."}]
    reply = bench.model(attempt).complete("cheap", hi, [], purpose="step")
    assert isinstance(reply, Reply)
    assert reply.text.strip()
    assert 0 < reply.usage.prompt_tokens < bench.till.claims[0].tokens
    assert 0 < reply.usage.completion_tokens <= 64


def test_call_that_must_be_made_is_made_with_arguments_that_fit(bench: Any, attempt: Any) -> None:
    hi = [{"role": "user", "content": "Show me README.md"}]
    reply = bench.model(attempt).complete("cheap", hi, [READ], purpose="step", must_call=True)
    assert isinstance(reply, Reply)
    assert reply.calls[0].name == "read_file"
    assert isinstance(json.loads(reply.calls[0].arguments)["path"], str)


def test_result_of_a_call_is_understood(bench: Any, attempt: Any) -> None:
    function = {"name": "read_file", "arguments": '{"path": "a"}'}
    past = [
        {"role": "user", "content": "What is in the file a?"},
        {
            "role": "assistant",
            "content": "",
            "tool_calls": [{"id": "c1", "type": "function", "function": function}],
        },
        {"role": "tool", "tool_call_id": "c1", "content": "zebra"},
    ]
    reply = bench.model(attempt).complete("cheap", past, [READ], purpose="step")
    assert isinstance(reply, Reply)


def test_all_the_tools_that_are_offered_are_understood(bench: Any, attempt: Any) -> None:
    odd = {"type": "string", "pattern": "x|y", "minLength": 1, "maxLength": 100_000}
    schema = {"type": "object", "properties": {"pattern": odd, "all": {"items": odd}}}
    tools = [*control.SPECS, READ, ToolSpec("odd", "Of a server of tools.", schema)]
    hi = [{"role": "user", "content": "Say hello."}]
    reply = bench.model(attempt).complete("cheap", hi, tools, purpose="step")
    assert isinstance(reply, Reply)


def test_answer_has_the_form_that_was_asked_for(bench: Any, attempt: Any) -> None:
    form = {"type": "object", "properties": {"sum": {"type": "integer"}}, "required": ["sum"]}
    question = Question("judge", "run-1", "T1", "cheap", "You add.", "2 and 3", form)
    answered = ask(question, bench.model(attempt))
    assert isinstance(answered, Answered)
    assert isinstance(json.loads(answered.text)["sum"], int)


def test_prompt_that_is_too_long_is_told(bench: Any, attempt: Any) -> None:
    long = [{"role": "user", "content": "word " * 5000}]
    assert isinstance(bench.model(attempt).complete("cheap", long, [], purpose="x"), Overflow)
