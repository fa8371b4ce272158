"""A server of tools written with the SDK, over stdio and over HTTP.

What it sends goes to the file that ``SERVING_SENT`` names; where that is told to (``SERVING_DIES``),
the server is gone right after, before anybody has an answer.
"""

import os
import sys
from pathlib import Path
from typing import Any

from mcp.server.mcpserver import Context, Image, MCPServer
from mcp.server.mcpserver.exceptions import ToolError
from mcp.types import ToolAnnotations

server = MCPServer("sdk")


@server.tool(annotations=ToolAnnotations(read_only_hint=True))
def add(left: int, right: int) -> int:
    """Return the sum."""
    return left + right


@server.tool(annotations=ToolAnnotations(destructive_hint=False, idempotent_hint=True))
def note(text: str, ctx: Context[Any]) -> dict[str, Any]:
    """Return what was noted, and the key under which."""
    meta = ctx.request_context.meta or {}
    return {"noted": text, "key": meta.get("idempotencyKey")}


@server.tool()
def fail(why: str) -> str:
    """Go wrong."""
    raise ToolError(why)


@server.tool(annotations=ToolAnnotations(read_only_hint=True))
def picture() -> Image:
    """Return a picture."""
    return Image(data=b"\x89PNG" + bytes(96), format="png")


@server.tool(annotations=ToolAnnotations(read_only_hint=True))
def large(mebibytes: int) -> str:
    """Return a long text."""
    return "x" * (mebibytes << 20)


@server.tool(annotations=ToolAnnotations(destructive_hint=False))
def send(to: str) -> str:
    """Send a greeting."""
    with Path(os.environ["SERVING_SENT"]).open("a") as file:
        file.write(f"{to}\n")
    if "SERVING_DIES" in os.environ:
        os._exit(1)
    return f"sent to {to}"


if __name__ == "__main__":
    if sys.argv[1:] == []:
        server.run("stdio")
    else:
        server.run("streamable-http", port=int(sys.argv[1]), json_response="json" in sys.argv)
