"""What a server that is reached by HTTP may do, and what comes of it."""

from typing import TYPE_CHECKING

import pytest

from loopctl.calls import Outcome, ToolResult
from loopctl.errors import EnvironmentFaultError
from loopctl.sandbox.mcp.link import MAX_STARTS

from .site import FORGOTTEN

if TYPE_CHECKING:
    from tests.integration.mcp.conftest import Bench
    from tests.integration.mcp.site import Site


@pytest.mark.parametrize(
    ("how", "said", "is_done"),
    [
        ("429", "was not carried out: the server answered with 429 Too Many Requests", False),
        ("error", "was not carried out: not like that", False),
        ("503", "the server answered with 503 Service Unavailable", None),
        ("broken", "the server answered with 500 Internal Server Error: it broke", None),
        ("page", "Unexpected content type", None),
        ("packed", "the server answered in the encoding gzip, which was not asked for", None),
        ("hang up", "the connection was lost", None),
        ("cut", "Failed to parse JSON response", None),
    ],
)
def test_a_call_that_http_has_failed_is_told_apart_by_whether_it_may_have_happened(
    bench: "Bench", site: "Site", how: str, said: str, is_done: object
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


@pytest.mark.parametrize("how", FORGOTTEN)
def test_a_call_in_a_session_that_was_forgotten_is_made_in_a_new_one(
    bench: "Bench", site: "Site", how: str
) -> None:
    site.forgotten_by = how
    servers = bench.open(web={"url": site.url})
    tools = servers.tools(bench.box())
    # More often than a server may be lost: a forgotten session is no fault of it.
    for _ in range(2 * MAX_STARTS):
        site.sessions.clear()
        assert tools["mcp__web__write"].tool.run({}, "k") == ToolResult("done")
        site.sessions.clear()
        assert list(servers.tools(bench.box())) == list(tools)
    assert site.done == 2 * MAX_STARTS
    site.sessions.clear()
    site.remembers = False
    refused = tools["mcp__web__write"].tool.run({}, "k")
    assert isinstance(refused, ToolResult)
    assert refused.is_error
    assert site.done == 2 * MAX_STARTS


@pytest.mark.parametrize(
    ("how", "said"),
    [
        ("error", "not like that"),
        ("error without id", "the server answered with 400 Bad Request: not at night"),
        ("error of a session", "Invalid session ID of the browser"),
    ],
)
def test_another_400_is_an_error_of_its_call_in_the_same_session(
    bench: "Bench", site: "Site", how: str, said: str
) -> None:
    tools = bench.open(web={"url": site.url}).tools(bench.box())
    site.how = how
    refused = tools["mcp__web__write"].tool.run({}, "k")
    assert refused == ToolResult(f"mcp__web__write was not carried out: {said}", is_error=True)
    assert site.asked.count("tools/call") == 1
    site.how = ""
    assert tools["mcp__web__write"].tool.run({}, "k") == ToolResult("done")
    assert site.asked.count("initialize") == 1


def test_headers_hold_the_values_of_variables_and_nothing_shows_them(
    bench: "Bench", site: "Site"
) -> None:
    bench.env |= {"SITE_TOKEN": "s3cret-token", "SITE_TEAM": "team one"}
    headers = {"Authorization": "SITE_TOKEN", "X-Team": "SITE_TEAM"}
    servers = bench.open(web={"url": site.url, "headers_env": headers})
    site.login = "Bearer s3cret-token"
    assert list(servers.tools(bench.box())) == ["mcp__web__read", "mcp__web__write"]
    assert site.headers["x-team"] == "team one"
    assert site.headers["accept-encoding"] == "identity"


def test_a_server_that_lets_nobody_in_or_is_not_there_is_a_fault(
    bench: "Bench", site: "Site"
) -> None:
    site.login = "Bearer other"
    with pytest.raises(EnvironmentFaultError) as caught:
        bench.open(web={"url": site.url}).tools(bench.box())
    assert str(caught.value) == (
        f"the tool server 'web' (http://127.0.0.1:{site.port}/mcp) cannot be used: the server answered with "
        "401 Unauthorized; name the variable that holds a key for it in headers_env of [mcp.web]."
    )
    with pytest.raises(EnvironmentFaultError, match="the server cannot be reached"):
        bench.open(web={"url": "http://127.0.0.1:1/mcp"}).tools(bench.box())
    with pytest.raises(EnvironmentFaultError, match="NOT_SET_HERE, which is not set"):
        bench.open(web={"url": site.url, "headers_env": {"X": "NOT_SET_HERE"}}).tools(bench.box())
