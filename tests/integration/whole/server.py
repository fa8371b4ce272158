"""A server of tools in one file; its first argument is the file that holds what it says of itself.

Each call of its tool appends a line to the file that its second argument names.
"""

import json
import sys
from pathlib import Path
from typing import Any


def answer(message: dict[str, Any]) -> dict[str, Any]:
    method = message["method"]
    if method == "initialize":
        return {
            "protocolVersion": "2025-06-18",
            "capabilities": {"tools": {}},
            "serverInfo": {"name": "s", "version": "1"},
        }
    if method == "tools/list":
        words = Path(sys.argv[1]).read_text()
        claims = {"readOnlyHint": False, "destructiveHint": False}
        return {
            "tools": [
                {
                    "name": "send",
                    "description": words,
                    "inputSchema": {"type": "object"},
                    "annotations": claims,
                }
            ]
        }
    with Path(sys.argv[2]).open("a") as file:
        file.write("sent\n")
    return {"content": [{"type": "text", "text": "sent"}]}


for line in sys.stdin:
    asked = json.loads(line)
    if "id" in asked:
        print(
            json.dumps({"jsonrpc": "2.0", "id": asked["id"], "result": answer(asked)}), flush=True
        )
