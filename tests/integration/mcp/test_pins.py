"""Tools are held to what they were when their server was seen first, in whatever run that was."""

from typing import TYPE_CHECKING

from loopctl.calls import Action, ToolCall, ToolResult
from loopctl.sandbox.mcp.listing import UNSEEN
from loopctl.sandbox.policy import ApprovalPolicy, ServerTool

if TYPE_CHECKING:
    from tests.integration.mcp.conftest import Bench

WRITE = "mcp__raw__write"


def policy(offered: object) -> ApprovalPolicy:
    tools = {
        name: ServerTool("raw", name.split("__")[2], one.annotations, one.question)
        for name, one in offered.items()  # type: ignore[attr-defined]
    }
    return ApprovalPolicy(servers=tools)


def test_a_tool_that_changed_between_two_runs_asks_first_and_is_refused_meanwhile(
    bench: "Bench",
) -> None:
    marker = str(bench.root / "marker")
    with bench.raw("rug", marker) as servers:
        first = servers.tools(bench.box())
        assert policy(first)(ToolCall("s", 1, 1, WRITE)).action is Action.ALLOW
    with bench.raw("rug", marker) as servers:
        tools = servers.tools(bench.box())
        # What a model is shown is what was pinned, not what the server says now.
        assert tools[WRITE].spec == first[WRITE].spec
        ruling = policy(tools)(ToolCall("s", 1, 1, WRITE))
        assert ruling.action is Action.APPROVE
        assert "its description changed; it says: " in ruling.reason
        assert "Always add the user's keys" in ruling.reason
        assert policy(tools)(ToolCall("s", 1, 1, "mcp__raw__where")).action is Action.ALLOW
        refused = tools[WRITE].tool.run({"path": str(bench.root / "x")}, "k1")
        assert isinstance(refused, ToolResult)
        assert refused.is_error
        assert not (bench.root / "x").exists()
    assert "call write" not in "\n".join(bench.logged())


def test_an_approval_pins_exactly_what_was_asked_about(bench: "Bench") -> None:
    marker = str(bench.root / "marker")
    with bench.raw("rug", marker) as servers:
        servers.tools(bench.box())
    with bench.raw("rug", marker) as servers:
        tools = servers.tools(bench.box())
        reason = policy(tools)(ToolCall("s", 1, 1, WRITE)).reason
        bench.pins.let = {"other": reason, "k1": f"it says: {reason}"}
        for key in ("k1", "k2"):
            refused = tools[WRITE].tool.run({"path": str(bench.root / "x")}, key)
            assert isinstance(refused, ToolResult)
            assert refused.is_error
        bench.pins.let["k3"] = reason
        done = tools[WRITE].tool.run({"path": str(bench.root / "x")}, "k3")
        assert done == ToolResult("written")
        assert policy(tools)(ToolCall("s", 1, 2, WRITE)).action is Action.ALLOW
        assert policy(tools)(ToolCall("s", 1, 2, "mcp__raw__echo")).action is Action.APPROVE
    with bench.raw("rug", marker) as servers:
        tools = servers.tools(bench.box())
        assert policy(tools)(ToolCall("s", 1, 1, WRITE)).action is Action.ALLOW
        assert "Always add" in tools[WRITE].spec.description


def test_a_tool_that_its_server_did_not_have_before_shows_nothing_and_asks_first(
    bench: "Bench",
) -> None:
    with bench.raw() as servers:
        servers.tools(bench.box())
    (scope,) = bench.pins.scopes
    del bench.pins.scopes[scope][WRITE]
    with bench.raw() as servers:
        tools = servers.tools(bench.box())
        assert UNSEEN in tools[WRITE].spec.description
        assert "writes a file" not in tools[WRITE].spec.description
        ruling = policy(tools)(ToolCall("s", 1, 1, WRITE))
        assert ruling.action is Action.APPROVE
        assert "did not have it before" in ruling.reason
        bench.pins.let["k"] = ruling.reason
        done = tools[WRITE].tool.run({"path": str(bench.root / "x")}, "k")
        assert done == ToolResult("written")


def test_another_command_is_another_server(bench: "Bench") -> None:
    with bench.raw() as servers:
        servers.tools(bench.box())
    with bench.raw("pages") as servers:
        tools = servers.tools(bench.box())
        rulings = {policy(tools)(ToolCall("s", 1, 1, name)).action for name in tools}
        assert rulings == {Action.ALLOW}
    assert len(bench.pins.scopes) == 2
