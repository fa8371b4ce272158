import http.client
import json
import threading
from collections.abc import Iterator, Mapping
from typing import Any

import pytest

from loopctl.testing import (
    CutOff,
    Garbled,
    HangUp,
    Held,
    HttpError,
    NoChoices,
    Play,
    ScriptedCall,
    ScriptedModel,
    ScriptedReply,
    Silence,
    overflow,
    rate_limited,
    wrong_key,
)
from loopctl.testing.chatwire import vector

ASK = {"model": "m", "messages": [{"role": "user", "content": "hi"}]}
STREAM = ASK | {"stream": True, "stream_options": {"include_usage": True}}


class Wire:
    def __init__(self, model: ScriptedModel) -> None:
        self.connection = http.client.HTTPConnection("127.0.0.1", model.port, timeout=60)

    def send(
        self, body: Mapping[str, Any], key: str = "k", path: str = "/v1/chat/completions"
    ) -> http.client.HTTPResponse:
        headers = {"Authorization": f"Bearer {key}", "Content-Type": "application/json"}
        self.connection.request("POST", path, json.dumps(body), headers)
        return self.connection.getresponse()

    def ask(self, body: Mapping[str, Any], key: str = "k") -> dict[str, Any]:
        found: dict[str, Any] = json.loads(self.send(body, key).read())
        return found

    def pieces(self, body: Mapping[str, Any]) -> list[Any]:
        lines = self.send(body).read().decode().strip().split("\n\n")
        assert lines.pop() == "data: [DONE]"
        return [json.loads(line.removeprefix("data: ")) for line in lines]


def serving(*plays: Play, **options: Any) -> Iterator[Wire]:
    with ScriptedModel(plays, **options) as model:
        wire = Wire(model)
        yield wire
        wire.connection.close()


def one(*plays: Play) -> pytest.MarkDecorator:
    return pytest.mark.parametrize("wire", [plays], indirect=True)


@pytest.fixture
def wire(request: pytest.FixtureRequest) -> Iterator[Wire]:
    yield from serving(*request.param)


@one(ScriptedReply("hello"), ScriptedReply("again", usage=None))
def test_replies_come_in_turn_and_the_last_one_for_ever(wire: Wire) -> None:
    answers = [wire.ask(ASK) for _ in range(3)]
    texts = [answer["choices"][0]["message"]["content"] for answer in answers]
    assert texts == ["hello", "again", "again"]
    assert ["usage" in answer for answer in answers] == [True, False, False]


@one(ScriptedReply("abcdefg", (ScriptedCall("edit", {"path": "a.py"}), ScriptedCall("done"))))
def test_streamed_calls_come_in_pieces_that_add_up(wire: Wire) -> None:
    pieces = wire.pieces(STREAM)
    deltas = [piece["choices"][0]["delta"] for piece in pieces[:-1]]
    assert "".join(delta.get("content", "") for delta in deltas) == "abcdefg"
    calls = [call for delta in deltas for call in delta.get("tool_calls", ())]
    assert [call["function"].get("name") for call in calls if "id" in call] == ["edit", "done"]
    texts = ["".join(c["function"]["arguments"] for c in calls if c["index"] == i) for i in (0, 1)]
    assert [json.loads(text) for text in texts] == [{"path": "a.py"}, {}]
    assert len(calls) > 5
    assert pieces[-2]["choices"][0]["finish_reason"] == "tool_calls"
    assert pieces[-1]["usage"] == {
        "prompt_tokens": 100,
        "completion_tokens": 10,
        "total_tokens": 110,
    }


@one(ScriptedReply(calls=(ScriptedCall("edit", '{"pa'),), refusal="no"))
def test_broken_arguments_and_refusals_are_sent_as_they_are(wire: Wire) -> None:
    message = wire.ask(ASK)["choices"][0]["message"]
    assert message["tool_calls"][0]["function"]["arguments"] == '{"pa'
    assert message["refusal"] == "no"
    assert "usage" not in wire.pieces(ASK | {"stream": True})[-1]


@one(rate_limited("7"), rate_limited(), HttpError(503), overflow(99), wrong_key())
def test_faults_have_their_status_and_their_body(wire: Wire) -> None:
    found = []
    for _ in range(5):
        response = wire.send(ASK, "secret")
        body = json.loads(response.read())["error"]
        found.append((response.status, response.headers["Retry-After"], body["code"]))
    assert found == [
        (429, "7", "rate_limit_exceeded"),
        (429, None, "rate_limit_exceeded"),
        (503, None, None),
        (400, None, "context_length_exceeded"),
        (401, None, "invalid_api_key"),
    ]
    assert "secret" in json.dumps(wire.ask(ASK, "secret"))


@one(Garbled(), NoChoices())
def test_nonsense_is_sent_with_success(wire: Wire) -> None:
    response = wire.send(ASK)
    with pytest.raises(ValueError, match="Expecting"):
        json.loads(response.read())
    assert response.status == 200
    assert wire.pieces(STREAM)[0]["choices"] == []


@one(CutOff(ScriptedReply("abc"), is_clean=True), CutOff(ScriptedReply("abc")))
def test_stream_that_is_cut_off_ends_cleanly_or_breaks(wire: Wire) -> None:
    text = wire.send(STREAM).read()
    assert b"DONE" not in text
    assert text.count(b"finish_reason") == text.count(b'"finish_reason": null')
    with pytest.raises(http.client.IncompleteRead):
        wire.send(STREAM).read()


@one(CutOff(ScriptedReply("abc")), HangUp())
def test_body_that_is_cut_off_and_closed_connection_break(wire: Wire) -> None:
    with pytest.raises(http.client.IncompleteRead):
        wire.send(ASK).read()
    wire.connection.close()
    with pytest.raises(http.client.RemoteDisconnected):
        wire.send(ASK)


def test_silence_ends_when_the_server_is_closed() -> None:
    with ScriptedModel([Silence()]) as model:
        wire = Wire(model)
        failed: list[bool] = []

        def ask() -> None:
            with pytest.raises(ConnectionError):
                wire.send(ASK)
            failed.append(True)

        asking = threading.Thread(target=ask)
        asking.start()
        assert model.wait_for(1)
        assert not failed
        model.close()
        asking.join(60)
    assert failed == [True]
    wire.connection.close()


def test_held_reply_comes_when_it_is_let_go() -> None:
    go = threading.Event()
    with ScriptedModel([Held(go, ScriptedReply("now"))]) as model:
        wire = Wire(model)

        def let_go() -> None:
            assert model.wait_for(1)
            go.set()

        threading.Thread(target=let_go).start()
        assert wire.ask(ASK)["choices"][0]["message"]["content"] == "now"
        wire.connection.close()


def test_function_sees_the_request_and_every_request_is_kept() -> None:
    with ScriptedModel(lambda request: ScriptedReply(str(request.messages[0]["content"]))) as model:
        wire = Wire(model)
        assert wire.ask(ASK, "mine")["choices"][0]["message"]["content"] == "hi"
        wire.connection.close()
        assert [(chat.key, chat.is_streamed, chat.body) for chat in model.chats] == [
            ("mine", False, ASK)
        ]


def test_wrong_key_is_refused_and_plays_nothing() -> None:
    for wire in serving(ScriptedReply("in"), key="right"):
        assert wire.ask(ASK, "wrong")["error"]["code"] == "invalid_api_key"
        assert wire.ask(ASK, "right")["choices"][0]["message"]["content"] == "in"


def test_models_and_embeddings_are_served() -> None:
    with ScriptedModel(models=["a", "b"], embed_faults=[HttpError(500)]) as model:
        wire = Wire(model)
        wire.connection.request("GET", "/v1/models")
        listed = json.loads(wire.connection.getresponse().read())
        assert [entry["id"] for entry in listed["data"]] == ["a", "b"]
        asked = {"model": "e", "input": ["one two", "three"]}
        response = wire.send(asked, path="/v1/embeddings")
        assert (response.status, response.read() != b"") == (500, True)
        found = json.loads(wire.send(asked, path="/v1/embeddings").read())
        assert [tuple(e["embedding"]) for e in found["data"]] == [
            vector("one two"),
            vector("three"),
        ]
        missing = wire.send({}, path="/v1/nothing")
        assert (missing.status, missing.read() != b"") == (404, True)
        wire.connection.close()


def test_texts_that_share_words_have_near_vectors() -> None:
    def near(one: str, two: str) -> float:
        return sum(a * b for a, b in zip(vector(one), vector(two), strict=True))

    assert near("read the header line", "write the header line") > near(
        "read the header line", "zebra"
    )
    assert near("", "a") == 0
