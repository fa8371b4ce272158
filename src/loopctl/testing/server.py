"""A scripted model behind a real HTTP server on loopback that speaks OpenAI's chat API.

What talks to a provider is tested against it, without a key and without the network::

    with ScriptedModel([ScriptedReply(calls=[ScriptedCall("done")]), rate_limited("2")]) as model:
        ...  # any client with the base URL `model.url`, from any process
        assert model.requests[0].tools

It has ``/v1/chat/completions`` (streamed and not), ``/v1/embeddings`` and ``/v1/models``, and keeps
every request. The script is played to chat requests only.
"""

import json
import threading
from collections.abc import Callable, Iterable, Mapping, Sequence
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from itertools import islice
from types import TracebackType
from typing import Any, Self

from loopctl.testing import chatwire
from loopctl.testing.script import (
    ChatRequest,
    CutOff,
    Garbled,
    HangUp,
    Held,
    HttpError,
    NoChoices,
    Play,
    Script,
    ScriptedReply,
    Silence,
    wrong_key,
)

_OK: Script = (ScriptedReply("ok"),)
_WAIT_S = 60.0
_CHAT = "/v1/chat/completions"


class ScriptedModel:
    """The server; it listens from its making until :meth:`close`.

    Args:
        script: What comes back for each chat request.
        key: Where it is given, a request with another bearer key gets status 401.
        embed_faults: For the first requests for embeddings, in turn; then they are answered.
        models: The names that the list of models has.
        every_path: The script is played to requests for any path: faults of other APIs.
    """

    def __init__(
        self,
        script: Script = _OK,
        *,
        key: str | None = None,
        embed_faults: Sequence[Play] = (),
        models: Sequence[str] = ("scripted",),
        every_path: bool = False,
    ) -> None:
        self._script = script
        self._key = key
        self._embed_faults = list(embed_faults)
        self._models = models
        self._every_path = every_path
        self._played = 0
        self._requests: list[ChatRequest] = []
        self._arrived = threading.Condition()
        self._closed = threading.Event()
        self._server = _Server(("127.0.0.1", 0), _Connection)
        self._server.model = self
        self._thread = threading.Thread(
            target=self._server.serve_forever, args=(0.02,), name="scripted-model", daemon=True
        )
        self._thread.start()

    @property
    def port(self) -> int:
        """The port on 127.0.0.1."""
        return int(self._server.server_address[1])

    @property
    def url(self) -> str:
        """The base URL for clients: ``http://127.0.0.1:PORT/v1``."""
        return f"http://127.0.0.1:{self.port}/v1"

    @property
    def requests(self) -> tuple[ChatRequest, ...]:
        """All requests so far, in the order of arrival, those that were refused as well."""
        with self._arrived:
            return tuple(self._requests)

    @property
    def chats(self) -> tuple[ChatRequest, ...]:
        """The chat requests among them."""
        return tuple(request for request in self.requests if request.path == _CHAT)

    def wait_for(self, number: int, timeout_s: float = _WAIT_S) -> bool:
        """Wait until ``number`` requests have arrived; false where they did not in that time."""
        with self._arrived:
            return self._arrived.wait_for(lambda: len(self._requests) >= number, timeout_s)

    def close(self) -> None:
        """Stop listening and let go of all who wait; the second time does nothing."""
        if self._closed.is_set():
            return
        self._closed.set()
        self._server.shutdown()
        self._server.server_close()
        self._thread.join(_WAIT_S)

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        self.close()

    # --- for the connections -------------------------------------------------------------------

    def received(
        self, path: str, headers: Mapping[str, str], body: Mapping[str, Any]
    ) -> tuple[ChatRequest, Play | dict[str, Any]]:
        """Keep a request and return it with what comes back: a play, or a body to be sent."""
        with self._arrived:
            request = ChatRequest(len(self._requests) + 1, path, headers, body)
            self._requests.append(request)
            self._arrived.notify_all()
            play = self._answer(request)
        return request, play() if callable(play) else play

    def _answer(self, request: ChatRequest) -> Play | dict[str, Any] | Callable[[], Play]:
        if self._key is not None and request.key != self._key:
            return wrong_key()
        if not self._every_path and request.path != _CHAT:
            return self._beside(request)
        script = self._script
        if callable(script):
            return lambda: script(request)
        self._played += 1
        return script[min(self._played, len(script)) - 1]

    def _beside(self, request: ChatRequest) -> Play | dict[str, Any]:
        if request.path == "/v1/models":
            return chatwire.models(self._models)
        if request.path == "/v1/embeddings":
            return self._embed_faults.pop(0) if self._embed_faults else chatwire.embeddings(request)
        return HttpError(404, f"no such path: {request.path}")

    def unheld(self, play: Play) -> Play:
        """Wait where a play is held or silent; what is silent to the end hangs up then."""
        while isinstance(play, Held | Silence):
            if isinstance(play, Silence):
                self._closed.wait()
                return HangUp()
            while not play.until.wait(0.02):
                if self._closed.is_set():
                    return HangUp()
            play = play.then
        return play


class _Server(ThreadingHTTPServer):
    daemon_threads = True
    # A client that was killed keeps its connection open for a while; nobody waits for that.
    block_on_close = False
    request_queue_size = 64
    model: ScriptedModel

    def handle_error(self, request: object, client_address: object) -> None:
        """Say nothing: clients that go away are part of the tests."""


class _Connection(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def do_GET(self) -> None:
        self._respond({})

    def do_POST(self) -> None:
        raw = self.rfile.read(int(self.headers.get("Content-Length") or 0))
        try:
            body = json.loads(raw)
        except ValueError:
            body = {}
        self._respond(body if isinstance(body, dict) else {})

    def log_message(self, format: str, *args: object) -> None:  # noqa: A002
        """Say nothing."""

    def _model(self) -> ScriptedModel:
        assert isinstance(self.server, _Server)  # noqa: S101
        return self.server.model

    def _respond(self, body: Mapping[str, Any]) -> None:
        headers = {name.lower(): value for name, value in self.headers.items()}
        model = self._model()
        request, answer = model.received(self.path, headers, body)
        if isinstance(answer, dict):
            self._send_json(200, answer)
        else:
            self._play(model.unheld(answer), request)

    def _play(self, play: Play, request: ChatRequest) -> None:
        match play:
            case ScriptedReply() if request.is_streamed:
                self._stream([*map(chatwire.event, chatwire.chunks(play, request)), chatwire.DONE])
            case ScriptedReply():
                self._send_json(200, chatwire.completion(play, request))
            case HttpError():
                self._send_json(play.status, chatwire.error(play, request), play.headers)
            case CutOff():
                self._cut_off(play, request)
            case Garbled() if request.is_streamed:
                self._stream([chatwire.event(play.text), chatwire.DONE])
            case Garbled():
                self._send(200, play.text.encode())
            case NoChoices() if request.is_streamed:
                self._stream([chatwire.event(chatwire.no_choices(request)), chatwire.DONE])
            case NoChoices():
                self._send_json(200, chatwire.no_choices(request))
            case _:
                self.close_connection = True

    def _cut_off(self, play: CutOff, request: ChatRequest) -> None:
        if not request.is_streamed:
            body = json.dumps(chatwire.completion(play.reply, request)).encode()
            self._send(200, body[: len(body) // 2], length=len(body))
            self.close_connection = True
            return
        pieces = list(chatwire.chunks(play.reply, request))
        kept = next(i for i, piece in enumerate(pieces) if piece["choices"][0]["finish_reason"])
        self._stream(map(chatwire.event, islice(pieces, kept)), is_whole=play.is_clean)

    def _send_json(
        self, status: int, body: Mapping[str, Any], headers: Mapping[str, str] | None = None
    ) -> None:
        self._send(status, json.dumps(body).encode(), headers)

    def _send(
        self,
        status: int,
        body: bytes,
        headers: Mapping[str, str] | None = None,
        length: int | None = None,
    ) -> None:
        self.send_response(status)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(body) if length is None else length))
        for name, value in (headers or {}).items():
            self.send_header(name, value)
        self.end_headers()
        self.wfile.write(body)

    def _stream(self, events: Iterable[bytes], *, is_whole: bool = True) -> None:
        self.send_response(200)
        self.send_header("Content-Type", "text/event-stream")
        self.send_header("Transfer-Encoding", "chunked")
        self.end_headers()
        for event in events:
            self.wfile.write(b"%x\r\n%s\r\n" % (len(event), event))
        if is_whole:
            self.wfile.write(b"0\r\n\r\n")
        else:
            self.close_connection = True
