"""What a server that is reached by HTTP may do, and what comes of it."""

import json
import threading
from collections.abc import Iterator
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import TYPE_CHECKING, Any

import pytest

from loopctl.calls import Outcome, ToolResult
from loopctl.errors import EnvironmentFaultError
from loopctl.sandbox.mcp.link import MAX_STARTS

if TYPE_CHECKING:
    from tests.integration.mcp.conftest import Bench

OBJECT = {"type": "object"}
TOOLS = [
    {"name": "read", "inputSchema": OBJECT, "annotations": {"readOnlyHint": True}},
    {"name": "write", "inputSchema": OBJECT},
]


@dataclass
class Site:
    """An endpoint that answers calls as it is told; it counts what it was asked."""

    port: int = 0
    how: str = ""
    login: str = ""
    forgets: int = 0
    done: int = 0
    asked: list[str] = field(default_factory=list)
    headers: dict[str, str] = field(default_factory=dict)

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.port}/mcp?key=in-the-query"


class Answering(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    site: Site

    def log_message(self, format: str, *args: object) -> None:  # noqa: A002 - the name it has
        """Say nothing."""

    def put(
        self, body: bytes, kind: str = "application/json", code: int = 200, **more: str
    ) -> None:
        self.send_response(code)
        for name, value in {"content-type": kind, "content-length": str(len(body)), **more}.items():
            self.send_header(name.replace("_", "-"), value)
        self.end_headers()
        self.wfile.write(body)

    def do_GET(self) -> None:
        self.put(b"", code=405)

    def do_DELETE(self) -> None:
        self.put(b"", code=200)

    def do_POST(self) -> None:
        message = json.loads(self.rfile.read(int(self.headers["content-length"])))
        method = message["method"]
        self.site.asked.append(method)
        self.site.headers = {name.lower(): value for name, value in self.headers.items()}
        if self.site.forgets and "mcp-session-id" in self.headers and "id" in message:
            self.site.forgets -= 1
            self.forgotten(message)
        elif self.site.login and self.headers["authorization"] != self.site.login:
            self.put(b'{"detail": "who are you?"}', code=401)
        elif method == "initialize":
            about = {"name": "site", "version": "1"}
            result = {
                "protocolVersion": "2025-06-18",
                "capabilities": {"tools": {}},
                "serverInfo": about,
            }
            self.result(message, result, mcp_session_id=f"s{len(self.site.asked)}")
        elif method == "tools/list":
            self.result(message, {"tools": TOOLS})
        elif method == "tools/call":
            self.call(message)
        else:
            self.put(b"", code=202)

    def result(self, message: dict[str, Any], result: dict[str, Any], **more: Any) -> None:
        body = {"jsonrpc": "2.0", "id": message["id"], "result": result}
        self.put(json.dumps(body).encode(), **more)

    def forgotten(self, message: dict[str, Any]) -> None:
        if self.site.how == "gone":
            self.put(b"<html>sorry</html>", "text/html", 404)
        else:
            error = {"code": -32600, "message": "Session not found"}
            body = {"jsonrpc": "2.0", "id": message["id"], "error": error}
            self.put(json.dumps(body).encode(), code=404)

    def call(self, message: dict[str, Any]) -> None:
        how = self.site.how
        if how.isdigit():
            self.put(b"<html>sorry</html>", "text/html", int(how))
        elif how == "error":
            error = {"code": -32000, "message": "not like that"}
            body = {"jsonrpc": "2.0", "id": message["id"], "error": error}
            self.put(json.dumps(body).encode(), code=400)
        elif how == "page":
            self.put(b"<html>hello</html>", "text/html")
        elif how == "packed":
            self.put(b"x", content_encoding="gzip")
        elif how == "hang up":
            self.close_connection = True
        elif how == "cut":
            self.send_response(200)
            self.send_header("content-type", "application/json")
            self.send_header("content-length", "1000")
            self.end_headers()
            self.wfile.write(b"{")
            self.close_connection = True
        else:
            self.site.done += 1
            self.result(message, {"content": [{"type": "text", "text": "done"}]})


@pytest.fixture
def site() -> Iterator[Site]:
    made = Site()
    handler = type("Bound", (Answering,), {"site": made})
    with ThreadingHTTPServer(("127.0.0.1", 0), handler) as server:
        server.daemon_threads = True
        made.port = server.server_address[1]
        thread = threading.Thread(target=server.serve_forever)
        thread.start()
        yield made
        server.shutdown()
        thread.join(20)


@pytest.mark.parametrize(
    ("how", "said", "is_done"),
    [
        ("429", "was not carried out: the server answered with 429 Too Many Requests", False),
        ("error", "was not carried out: not like that", False),
        ("503", "the server answered with 503 Service Unavailable", None),
        ("page", "Unexpected content type", None),
        ("packed", "the server answered in the encoding gzip, which was not asked for", None),
        ("hang up", "the connection was lost", None),
        ("cut", "Failed to parse JSON response", None),
    ],
)
def test_a_call_that_http_has_failed_is_told_apart_by_whether_it_may_have_happened(
    bench: "Bench", site: Site, how: str, said: str, is_done: object
) -> None:
    servers = bench.open(web={"url": site.url})
    tools = servers.tools(bench.box())
    site.how = how
    read = tools["mcp__web__read"].tool.run({}, "k")
    written = tools["mcp__web__write"].tool.run({}, "k")
    assert isinstance(read, ToolResult)
    assert read.is_error
    assert said in read.content
    if is_done is None:
        assert written is Outcome.UNKNOWN
    else:
        assert isinstance(written, ToolResult)
        assert written.is_error
    assert site.asked.count("tools/call") == 2
    site.how = ""
    assert tools["mcp__web__write"].tool.run({}, "k") == ToolResult("done")
    assert site.asked.count("initialize") == 1


@pytest.mark.parametrize("how", ["gone", "gone, in JSON"])
def test_a_call_in_a_session_that_was_forgotten_is_made_in_a_new_one(
    bench: "Bench", site: Site, how: str
) -> None:
    servers = bench.open(web={"url": site.url})
    tools = servers.tools(bench.box())
    # More often than a server may be lost: a forgotten session is no fault of it.
    for _ in range(2 * MAX_STARTS):
        site.how = how
        site.forgets = 1
        assert tools["mcp__web__write"].tool.run({}, "k") == ToolResult("done")
        site.forgets = 1
        assert list(servers.tools(bench.box())) == list(tools)
    assert site.done == 2 * MAX_STARTS
    site.forgets = 1 << 30
    refused = tools["mcp__web__write"].tool.run({}, "k")
    assert isinstance(refused, ToolResult)
    assert refused.is_error
    assert site.done == 2 * MAX_STARTS


def test_headers_hold_the_values_of_variables_and_nothing_shows_them(
    bench: "Bench", site: Site
) -> None:
    bench.env |= {"SITE_TOKEN": "s3cret-token", "SITE_TEAM": "team one"}
    headers = {"Authorization": "SITE_TOKEN", "X-Team": "SITE_TEAM"}
    servers = bench.open(web={"url": site.url, "headers_env": headers})
    site.login = "Bearer s3cret-token"
    assert list(servers.tools(bench.box())) == ["mcp__web__read", "mcp__web__write"]
    assert site.headers["x-team"] == "team one"
    assert site.headers["accept-encoding"] == "identity"


def test_a_server_that_lets_nobody_in_or_is_not_there_is_a_fault(
    bench: "Bench", site: Site
) -> None:
    site.login = "Bearer other"
    with pytest.raises(EnvironmentFaultError) as caught:
        bench.open(web={"url": site.url}).tools(bench.box())
    assert str(caught.value) == (
        f"the tool server 'web' (http://127.0.0.1:{site.port}/mcp) cannot be used: the server answered with "
        "401 Unauthorized. See that it runs and lets you in, or mend [mcp.web]."
    )
    with pytest.raises(EnvironmentFaultError, match="the server cannot be reached"):
        bench.open(web={"url": "http://127.0.0.1:1/mcp"}).tools(bench.box())
    with pytest.raises(EnvironmentFaultError, match="NOT_SET_HERE, which is not set"):
        bench.open(web={"url": site.url, "headers_env": {"X": "NOT_SET_HERE"}}).tools(bench.box())
