"""Against servers written with the SDK."""

import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from loopctl.calls import Annotations, Effect, ToolResult
from loopctl.fencing import fence

if TYPE_CHECKING:
    from tests.integration.mcp.conftest import Bench, Serve


@pytest.fixture(scope="module", params=["stream", "json"])
def url(request: pytest.FixtureRequest, serve: "Serve") -> Iterator[str]:
    """The address of a server over HTTP that answers in the given way."""
    with serve(request.param) as found:
        yield found


def check(bench: "Bench", name: str, **server: Any) -> None:
    servers = bench.open(None, **{name: server})
    tools = servers.tools(bench.box())
    assert list(tools) == [
        f"mcp__{name}__{own}" for own in ("add", "fail", "large", "note", "picture", "send")
    ]
    add, fail, large, note, picture, _ = tools.values()
    assert add.spec.name == f"mcp__{name}__add"
    assert add.spec.description == fence("Return the sum.", "words of the server")
    assert set(add.spec.parameters["properties"]) == {"left", "right"}
    assert add.annotations == Annotations(read_only=True, destructive=False)
    assert note.annotations == Annotations(destructive=False, idempotent=True)
    assert fail.annotations == Annotations()
    assert [add.tool.effect, note.tool.effect] == [Effect.NONE, Effect.OUTSIDE]
    assert add.tool.run({"left": 2, "right": 3}, "k") == ToolResult("5")
    noted = note.tool.run({"text": "ä"}, "the key")
    assert isinstance(noted, ToolResult)
    assert noted.content.count('"the key"') == 1
    failed = fail.tool.run({"why": "no"}, "k")
    assert isinstance(failed, ToolResult)
    assert failed.is_error
    assert "no" in failed.content
    wrong = add.tool.run({"left": "x"}, "k")
    assert isinstance(wrong, ToolResult)
    assert wrong.is_error
    assert picture.tool.run({}, "k") == ToolResult("[image, image/png, 100 bytes]")
    long = large.tool.run({"mebibytes": 1}, "k")
    assert isinstance(long, ToolResult)
    assert len(long.content.encode()) <= 64 << 10


def test_tools_of_a_server_over_stdio_are_listed_and_called(bench: "Bench") -> None:
    check(bench, "local", command=bench.sdk_command)


def test_tools_of_a_server_over_http_are_listed_and_called(bench: "Bench", url: str) -> None:
    check(bench, "web", url=url)


def test_an_answer_over_http_that_is_too_large_is_an_error_of_its_own_call(
    bench: "Bench", url: str
) -> None:
    tools = bench.open(web={"url": url}).tools(bench.box())
    huge = tools["mcp__web__large"].tool.run({"mebibytes": 20}, "k")
    assert isinstance(huge, ToolResult)
    assert huge.is_error
    assert tools["mcp__web__add"].tool.run({"left": 1, "right": 1}, "k") == ToolResult("2")


def test_the_connection_over_http_is_shared_by_all_sandboxes(bench: "Bench", url: str) -> None:
    servers = bench.open(web={"url": url})
    one, other = servers.tools(bench.box("one")), servers.tools(bench.box("other"))
    servers.leave("one")
    for tools in (one, other):
        assert tools["mcp__web__add"].tool.run({"left": 1, "right": 1}, "k") == ToolResult("2")
    assert list(one) == list(other)


LAZY = """
import sys
from pathlib import Path
import loopctl.assembly, loopctl.bootstrap
from loopctl.sandbox.confine.none import Unconfined
from loopctl.fencing import fence
from loopctl.sandbox.mcp.servers import Servers
from loopctl.testing import MemoryPins
around = {"folder": Path("x"), "env": {}, "confinement": Unconfined(), "pins": MemoryPins()}
with Servers({}, checkout=Path(), **around) as servers:
    assert servers.tools(object()) == {}
print(sorted({name.partition(".")[0] for name in sys.modules} & {"mcp", "anyio", "httpx2"}))
"""


def test_a_run_without_servers_never_loads_the_sdk(tmp_path: Path) -> None:
    done = subprocess.run(
        [sys.executable, "-c", LAZY], cwd=tmp_path, capture_output=True, text=True, check=True
    )
    assert done.stdout == "[]\n"
