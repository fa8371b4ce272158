"""A server written with the SDK, reached by HTTP, that goes away and comes back."""

from pathlib import Path
from typing import TYPE_CHECKING
from urllib.parse import urlsplit

import pytest

from loopctl.calls import Outcome, ToolResult

if TYPE_CHECKING:
    from tests.integration.mcp.conftest import Bench, Serve


@pytest.mark.parametrize("how", ["stream", "json"])
def test_a_server_that_dies_of_a_call_leaves_it_unknown_and_is_connected_with_again(
    bench: "Bench", serve: "Serve", tmp_path: Path, how: str
) -> None:
    sent = tmp_path / "sent"
    with serve(how, SERVING_SENT=str(sent), SERVING_DIES="1") as url:
        tools = bench.open(web={"url": url}).tools(bench.box())
        send, add = (tools[f"mcp__web__{name}"].tool for name in ("send", "add"))
        assert add.run({"left": 1, "right": 1}, "k") == ToolResult("2")
        assert send.run({"to": "you"}, "k") is Outcome.UNKNOWN
        assert send.probe({"to": "you"}, "k") is Outcome.UNKNOWN
        gone = add.run({"left": 1, "right": 1}, "k")
    assert isinstance(gone, ToolResult)
    assert gone.is_error
    assert "cannot be reached" in gone.content
    port = urlsplit(url).port
    with serve(how, port, SERVING_SENT=str(sent)):
        # It knows nothing of the session that was.
        assert add.run({"left": 1, "right": 1}, "k") == ToolResult("2")
        assert send.run({"to": "me"}, "l") == ToolResult("sent to me")
    assert sent.read_text() == "you\nme\n"
