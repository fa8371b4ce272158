"""Against servers over HTTP on the SDK for JavaScript, from the npm registry: others' and a script."""

import json
import threading
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import TYPE_CHECKING, Any
from urllib.parse import urlsplit

import pytest

from loopctl.calls import Annotations, Effect, Outcome, ToolResult
from loopctl.sandbox.mcp.link import MAX_STARTS

if TYPE_CHECKING:
    from tests.integration.mcp.conftest import Bench
    from tests.integration.npm import Npm

pytestmark = pytest.mark.slow

NAMES = (
    "echo",
    "get-annotated-message",
    "get-env",
    "get-resource-links",
    "get-resource-reference",
    "get-structured-content",
    "get-sum",
    "get-tiny-image",
    "gzip-file-as-resource",
    "simulate-research-query",
    "toggle-simulated-logging",
    "toggle-subscriber-updates",
    "trigger-long-running-operation",
)
PAGING = Path(__file__).parent / "paging.mjs"
READS = Annotations(read_only=True, destructive=False, idempotent=True)
PACKED = "gzip-file-as-resource"
WAIT_S = 60


@dataclass
class Fetched:
    """A page that a tool fetches: its effect, which can be counted."""

    url: str = ""
    count: int = 0
    begun: threading.Event = field(default_factory=threading.Event)
    let: threading.Event = field(default_factory=threading.Event)


@contextmanager
def page() -> Iterator[Fetched]:
    made = Fetched()
    made.let.set()

    class Answering(BaseHTTPRequestHandler):
        def log_message(self, format: str, *args: object) -> None:  # noqa: A002 - its name
            """Say nothing."""

        def do_GET(self) -> None:
            made.count += 1
            made.begun.set()
            made.let.wait(WAIT_S)
            self.send_response(200)
            self.send_header("content-length", "5")
            self.end_headers()
            self.wfile.write(b"words")

    with ThreadingHTTPServer(("127.0.0.1", 0), Answering) as server:
        made.url = f"http://127.0.0.1:{server.server_address[1]}/page"
        thread = threading.Thread(target=server.serve_forever)
        thread.start()
        try:
            yield made
        finally:
            made.let.set()
            server.shutdown()
            thread.join(WAIT_S)


def tools(bench: "Bench", url: str) -> dict[str, Any]:
    """Return the tools of the server by the names that it has for them."""
    found = bench.open(web={"url": url}).tools(bench.box())
    return {name.removeprefix("mcp__web__"): one for name, one in found.items()}


def test_the_tools_of_a_server_of_others_are_listed_with_what_it_claims_of_them(
    bench: "Bench", npm: "Npm"
) -> None:
    with npm.everything() as url:
        found = tools(bench, url)
    assert tuple(found) == NAMES
    claims = {name: one.annotations for name, one in found.items()}
    assert claims["get-sum"] == READS
    assert claims["toggle-simulated-logging"] == Annotations(destructive=False)
    assert claims[PACKED] == Annotations(destructive=False, idempotent=True)
    # A claim to be idempotent makes nothing of it: it counts as an effect outside all the same.
    assert {name for name, one in found.items() if one.tool.effect is Effect.OUTSIDE} == {
        PACKED,
        "simulate-research-query",
        "toggle-simulated-logging",
        "toggle-subscriber-updates",
    }
    assert set(found["get-sum"].spec.parameters["properties"]) == {"a", "b"}


def test_what_a_server_of_others_answers_is_shown_as_it_is(bench: "Bench", npm: "Npm") -> None:
    with npm.everything() as url, page() as fetched:
        found = tools(bench, url)

        def run(tool: str, **arguments: Any) -> ToolResult:
            came = found[tool].tool.run(arguments, "k")
            assert isinstance(came, ToolResult)
            return came

        assert run("echo", message="ä\n") == ToolResult("Echo: ä\n")
        assert run("get-sum", a=2, b=3) == ToolResult("The sum of 2 and 3 is 5.")
        weather = run("get-structured-content", location="Chicago").content
        assert json.loads(weather) == {
            "temperature": 36,
            "conditions": "Light rain / drizzle",
            "humidity": 82,
        }
        assert "[image, image/png, " in run("get-tiny-image").content
        assert "[link to a resource: " in run("get-resource-links", count=2).content
        packed = run(PACKED, name="w.gz", data=fetched.url, outputType="resource").content
        assert packed.startswith("[resource demo://resource/session/w.gz, application/gzip, ")
        assert fetched.count == 1
        wrong = run("get-sum", a="two", b=3)
        assert (wrong.is_error, "expected number" in wrong.content) == (True, True)
        refused = run(PACKED, name="w.gz", data="ftp://127.0.0.1/page")
        assert (refused.is_error, "Unsupported URL protocol" in refused.content) == (True, True)
        assert run("get-sum", a=1, b=1) == ToolResult("The sum of 1 and 1 is 2.")


def test_a_server_of_others_that_was_started_anew_makes_each_call_once(
    bench: "Bench", npm: "Npm"
) -> None:
    port = 0
    with page() as fetched:
        found: dict[str, Any] = {}
        # More often than a server may be lost, and it answers 400 to what it has forgotten.
        for number in range(MAX_STARTS + 2):
            with npm.everything(port) as url:
                port = urlsplit(url).port or 0
                found = found or tools(bench, url)
                came = found[PACKED].tool.run({"name": "w.gz", "data": fetched.url}, f"k{number}")
                assert isinstance(came, ToolResult)
                assert not came.is_error, came.content
                assert fetched.count == number + 1
        gone = found[PACKED].tool.run({"name": "w.gz", "data": fetched.url}, "last")
        assert isinstance(gone, ToolResult)
        assert "was not carried out: the server cannot be reached" in gone.content
        assert fetched.count == MAX_STARTS + 2


def test_a_call_that_a_server_of_others_died_of_is_unknown_and_never_made_again(
    bench: "Bench", npm: "Npm"
) -> None:
    with page() as fetched, ThreadPoolExecutor(1) as pool:
        with npm.everything() as url:
            found = tools(bench, url)
            fetched.let.clear()
            packed = found[PACKED].tool
            call = pool.submit(packed.run, {"name": "w.gz", "data": fetched.url}, "k")
            assert fetched.begun.wait(WAIT_S)
        # The other end is gone before it could answer; what comes next has forgotten all.
        with npm.everything(urlsplit(url).port or 0):
            assert call.result(WAIT_S) is Outcome.UNKNOWN
            fetched.let.set()
            assert found["get-sum"].tool.run({"a": 1, "b": 1}, "l") == ToolResult(
                "The sum of 1 and 1 is 2."
            )
        assert fetched.count == 1


def test_tools_come_page_by_page_and_a_404_in_json_is_a_session_that_was_forgotten(
    bench: "Bench", npm: "Npm", tmp_path: Path
) -> None:
    done = tmp_path / "done"
    with npm.script(PAGING, PAGING_DONE=str(done)) as url:
        servers = bench.open(web={"url": url})
        found = servers.tools(bench.box())
        assert list(found) == [f"mcp__web__t{number}" for number in range(8)]
        last = found["mcp__web__t7"].tool
        # What it says in structure alone is shown too.
        assert last.run({}, "k") == ToolResult('counted\n{"by": "t7"}')
    with npm.script(PAGING, urlsplit(url).port or 0, PAGING_DONE=str(done)):
        assert last.run({}, "l") == ToolResult('counted\n{"by": "t7"}')
        assert list(servers.tools(bench.box())) == list(found)
    assert done.read_text().split() == ["t7", "t7"]
