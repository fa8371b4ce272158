import json
import os
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from loopctl.domain import Assumption, DecisionDraft, DecisionKind, Option
from loopctl.ports import Exchange
from loopctl.sandbox.exchange import FORMS, MAX_MESSAGE_BYTES, MAX_MESSAGES, OutboxExchange
from loopctl.steps import Assumed, Deferred, ForkRaised, MessageMalformed, PremiseInvalid, TodoDone


@pytest.fixture
def exchange(tmp_path: Path) -> OutboxExchange:
    made = OutboxExchange(tmp_path / "T1")
    made.offer("")
    return made


def outbox(exchange: Exchange) -> Path:
    return Path(exchange.env["LOOP_OUTBOX"])


def put(exchange: Exchange, name: str, content: object) -> None:
    (outbox(exchange) / name).write_text(
        content if isinstance(content, str) else json.dumps(content)
    )


def malformed(exchange: Exchange) -> str:
    (message,) = exchange.messages()
    assert isinstance(message, MessageMalformed)
    return message.error


def test_every_message_is_read_in_the_order_of_the_file_names(exchange: OutboxExchange) -> None:
    put(exchange, "3.json", {"type": "premise_invalid", "claim": "c", "evidence": "e"})
    put(
        exchange,
        "1.json",
        {"type": "defer", "reason": "r", "decision_needed": "which?", "best_guess": "this"},
    )
    put(
        exchange,
        "2.json",
        {
            "type": "fork",
            "question": "q",
            "bucket": "quality",
            "options": [{"name": "a", "prompt": "p"}, {"name": "b"}],
        },
    )
    put(exchange, "4.json", {"type": "assumption", "text": "t", "decision": "T2.1"})
    put(exchange, "5.json", {"type": "todo_done", "summary": "s"})
    assert list(exchange.messages()) == [
        Deferred(DecisionDraft(DecisionKind.EXTERNAL, "which?", best_guess="this", reason="r")),
        ForkRaised("q", "quality", (Option("a", "p"), Option("b"))),
        PremiseInvalid("c", "e"),
        Assumed(Assumption("t", "T2.1")),
        TodoDone("s"),
    ]


@pytest.mark.parametrize(
    ("content", "said"),
    [
        ("{", "no JSON"),
        ("[" * 100_000, "no JSON"),
        ("[]", "one JSON object"),
        ("{}", "unknown type null"),
        ({"type": "done"}, 'unknown type "done"'),
        ({"type": ["defer"]}, "unknown type"),
        ({"type": "defer"}, "decision_needed is missing"),
        ({"type": "defer", "decision_needed": " "}, "decision_needed is empty"),
        ({"type": "defer", "decision_needed": 4}, "decision_needed is a text, not 4"),
        ({"type": "defer", "decision_needed": "x", "why": "y"}, 'unknown key "why"'),
        ({"type": "todo_done", "summary": "\ud800"}, "surrogate"),
        ({"type": "fork", "question": "q", "bucket": "other", "options": []}, "bucket is"),
        ({"type": "fork", "question": "q", "bucket": "scope", "options": []}, "at least one"),
        ({"type": "fork", "question": "q", "bucket": "scope", "options": [1]}, "is an object"),
        (
            {
                "type": "fork",
                "question": "q",
                "bucket": "scope",
                "options": [{"name": "a"}, {"name": "a"}],
            },
            "same name",
        ),
    ],
)
def test_what_is_no_message_says_what_is_wrong_and_what_is_accepted(
    exchange: OutboxExchange, content: object, said: str
) -> None:
    put(exchange, "m.json", content)
    error = malformed(exchange)
    assert said in error
    assert error.startswith("m.json: ")
    assert '{"type": ' in error


@pytest.mark.parametrize("kind", list(FORMS))
def test_the_shown_forms_are_accepted(exchange: OutboxExchange, kind: str) -> None:
    put(exchange, "m.json", FORMS[kind].replace("quality|scope|external", "scope"))
    (message,) = exchange.messages()
    assert not isinstance(message, MessageMalformed)


def test_only_ordinary_files_are_read(exchange: OutboxExchange, tmp_path: Path) -> None:
    secret = tmp_path / "secret"
    secret.write_text(json.dumps({"type": "todo_done", "summary": "leaked"}))
    box = outbox(exchange)
    (box / "link").symlink_to(secret)
    os.mkfifo(box / "pipe")
    (box / "folder").mkdir()
    found = list(exchange.messages())
    assert len(found) == 3
    assert all(isinstance(message, MessageMalformed) for message in found)
    assert "leaked" not in repr(found)


def test_size_encoding_and_number_are_bounded(exchange: OutboxExchange) -> None:
    put(exchange, "big", "x" * (MAX_MESSAGE_BYTES + 1))
    assert "at most" in malformed(exchange)
    exchange.offer("")
    (outbox(exchange) / "latin").write_bytes(b'{"type": "todo_done", "summary": "\xe9"}')
    assert "UTF-8" in malformed(exchange)
    exchange.offer("")
    for number in range(MAX_MESSAGES + 5):
        put(exchange, f"{number:03}", {"type": "todo_done"})
    found = list(exchange.messages())
    assert len(found) == MAX_MESSAGES + 1
    assert isinstance(found[-1], MessageMalformed)


def test_a_file_still_being_written_is_left_alone(exchange: OutboxExchange) -> None:
    put(exchange, ".m.json", "{")
    assert list(exchange.messages()) == []


def test_offer_writes_the_observation_and_empties_the_outbox(exchange: OutboxExchange) -> None:
    observation = Path(exchange.env["LOOP_OBSERVATION"])
    assert observation.read_text() == ""
    put(exchange, "m.json", {"type": "todo_done"})
    exchange.offer("it failed\n")
    assert observation.read_text() == "it failed\n"
    assert list(exchange.messages()) == []


def test_a_worker_that_ruins_the_folder_does_not_stop_the_next_step(
    exchange: OutboxExchange, tmp_path: Path
) -> None:
    box, observation = outbox(exchange), Path(exchange.env["LOOP_OBSERVATION"])
    victim = tmp_path / "victim"
    victim.write_text("mine")
    box.rmdir()
    box.write_text("a file")
    observation.unlink()
    observation.symlink_to(victim)
    assert list(exchange.messages()) == []
    exchange.offer("next")
    assert box.is_dir()
    assert observation.read_text() == "next"
    assert victim.read_text() == "mine"


@given(
    st.one_of(
        st.binary(max_size=200),
        st.recursive(
            st.none() | st.booleans() | st.floats() | st.text(),
            lambda inner: (
                st.lists(inner)
                | st.dictionaries(st.sampled_from(["type", "options", "summary", "x"]), inner)
            ),
            max_leaves=8,
        ).map(lambda value: json.dumps(value).encode()),
    )
)
@settings(suppress_health_check=[HealthCheck.function_scoped_fixture], max_examples=300)
def test_no_content_raises(exchange: OutboxExchange, content: bytes) -> None:
    (outbox(exchange) / "m").write_bytes(content)
    messages: list[Any] = list(exchange.messages())
    assert len(messages) == 1
