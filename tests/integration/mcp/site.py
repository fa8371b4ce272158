"""An endpoint of streamable HTTP without any library; it misbehaves as it is told."""

import contextlib
import json
import ssl
import threading
from collections.abc import Iterator
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

OBJECT = {"type": "object"}
TOOLS = [
    {"name": "read", "inputSchema": OBJECT, "annotations": {"readOnlyHint": True}},
    {"name": "write", "inputSchema": OBJECT},
]


def _error(code: int, message: str) -> bytes:
    return json.dumps({"jsonrpc": "2.0", "error": {"code": code, "message": message}}).encode()


FORGOTTEN = {
    "": (b"<html>sorry</html>", "text/html", 404),
    "404, in JSON": (_error(-32600, "Session not found"), "application/json", 404),
    "400, in JSON": (
        _error(-32000, "Bad Request: No valid session ID provided"),
        "application/json",
        400,
    ),
    "400, not initialized": (
        _error(-32000, "Bad Request: Server not initialized"),
        "application/json",
        400,
    ),
    "400, in text": (b"Invalid session ID\n", "text/plain", 400),
}
"""How servers answer in a session that they do not know, as found in the wild."""


@dataclass
class Site:
    """What the endpoint is told, and what it has seen.

    Attributes:
        how: It answers calls.
        forgotten_by: It answers so in a session that it does not know.
        remembers: It knows the sessions that it has begun.
        moved: A status and an address by what it is asked: a method of the protocol or of HTTP.
    """

    port: int = 0
    how: str = ""
    login: str = ""
    forgotten_by: str = ""
    remembers: bool = True
    no_entry: tuple[bytes, str, int] = (b'{"detail": "who are you?"}', "application/json", 401)
    moved: dict[str, tuple[int, str]] = field(default_factory=dict)
    done: int = 0
    asked: list[str] = field(default_factory=list)
    paths: set[str] = field(default_factory=set)
    sessions: set[str] = field(default_factory=set)
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
        if not self.move("GET"):
            self.put(b"", code=405)

    def do_DELETE(self) -> None:
        if not self.move("DELETE"):
            self.put(b"", code=200)

    def move(self, asked: str) -> bool:
        self.site.paths.add(self.path.partition("?")[0])
        if asked not in self.site.moved:
            return False
        code, location = self.site.moved[asked]
        self.put(b"<html>over there</html>", "text/html", code, location=location)
        return True

    def do_POST(self) -> None:
        message = json.loads(self.rfile.read(int(self.headers["content-length"])))
        method = message["method"]
        self.site.asked.append(method)
        self.site.headers = {name.lower(): value for name, value in self.headers.items()}
        if self.move(method):
            return
        session = self.headers["mcp-session-id"]
        if session is not None and session not in self.site.sessions:
            self.forgotten()
        elif self.site.login and self.headers["authorization"] != self.site.login:
            self.put(*self.site.no_entry)
        elif method == "initialize":
            about = {"name": "site", "version": "1"}
            result = {
                "protocolVersion": "2025-06-18",
                "capabilities": {"tools": {}},
                "serverInfo": about,
            }
            name = f"s{len(self.site.asked)}"
            if self.site.remembers:
                self.site.sessions.add(name)
            self.result(message, result, mcp_session_id=name)
        elif method == "tools/list":
            self.result(message, {"tools": TOOLS})
        elif method == "tools/call":
            self.call(message)
        else:
            self.put(b"", code=202)

    def result(self, message: dict[str, Any], result: dict[str, Any], **more: Any) -> None:
        body = {"jsonrpc": "2.0", "id": message["id"], "result": result}
        self.put(json.dumps(body).encode(), **more)

    def forgotten(self) -> None:
        self.put(*FORGOTTEN[self.site.forgotten_by])

    def call(self, message: dict[str, Any]) -> None:
        how = self.site.how
        if how == "error without id":
            self.put(_error(-32000, "not at night"), code=400)
        elif how == "broken":
            body = {**json.loads(_error(-32603, "it broke")), "id": None}
            self.put(json.dumps(body).encode(), code=500)
        elif how.isdigit():
            self.put(b"<html>sorry</html>", "text/html", int(how))
        elif how in {"error", "error of a session"}:
            words = "not like that" if how == "error" else "Invalid session ID of the browser"
            error = {"code": -32000, "message": words}
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


@contextlib.contextmanager
def opened(tls: ssl.SSLContext | None = None) -> Iterator[Site]:
    """Serve on a free port of loopback; yield what there is to tell and to see."""
    made = Site()
    handler = type("Bound", (Answering,), {"site": made})
    with ThreadingHTTPServer(("127.0.0.1", 0), handler) as server:
        server.daemon_threads = True
        if tls is not None:
            server.socket = tls.wrap_socket(server.socket, server_side=True)
        made.port = server.server_address[1]
        thread = threading.Thread(target=server.serve_forever)
        thread.start()
        try:
            yield made
        finally:
            server.shutdown()
            thread.join(20)
