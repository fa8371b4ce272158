"""A server of tools whose one tool fails, with the text of the file that it is started with.

It says the same on its standard error.
"""

import json
import sys
from pathlib import Path
from typing import Any

WORDS = Path(sys.argv[1]).read_text()


def answer(message: dict[str, Any]) -> dict[str, Any]:
    if message["method"] == "initialize":
        found: dict[str, Any] = {
            "protocolVersion": "2025-06-18",
            "capabilities": {"tools": {}},
            "serverInfo": {"name": "s", "version": "1"},
        }
    elif message["method"] == "tools/list":
        claims = {"readOnlyHint": True, "destructiveHint": False}
        tool = {"name": "look", "description": "Look.", "inputSchema": {"type": "object"}}
        found = {"tools": [tool | {"annotations": claims}]}
    else:
        print(WORDS, file=sys.stderr, flush=True)
        return {"error": {"code": -32000, "message": WORDS}}
    return {"result": found}


for line in sys.stdin:
    asked = json.loads(line)
    if "id" in asked:
        print(json.dumps({"jsonrpc": "2.0", "id": asked["id"], **answer(asked)}), flush=True)
