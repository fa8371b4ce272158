"""What a server answered to a call, as a worker is shown it."""

import json
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

from loopctl.calls import ToolResult, bounded
from loopctl.sandbox.mcp.texts import Secrets, one_line

if TYPE_CHECKING:
    from mcp import types

_SHOWN = 200


def rendered(result: "types.CallToolResult", secrets: Secrets) -> ToolResult:
    """Return the texts as they are, one line for each other part, structure as JSON; bounded."""
    texts = [line for part in result.content for line in _part(part)]
    if "structured_content" in result.model_fields_set and result.structured_content is not None:
        said = [part.text for part in result.content if part.type == "text"]
        if not any(_says(text, result.structured_content) for text in said):
            texts.append(_json(result.structured_content))
    content = "\n".join(texts).encode("utf-8", "replace").decode()
    return ToolResult(bounded(secrets.hide(content)), is_error=result.is_error)


def _part(part: "types.ContentBlock") -> Iterator[str]:
    match part.type:
        case "text":
            yield part.text
        case "image" | "audio":
            yield f"[{part.type}, {_line(part.mime_type)}, {_size(part.data)} bytes]"
        case "resource_link":
            yield f"[link to a resource: {_line(part.name)}, {_line(str(part.uri))}]"
        case "resource":
            yield from _resource(part.resource)


def _resource(
    resource: "types.TextResourceContents | types.BlobResourceContents",
) -> Iterator[str]:
    uri = _line(str(resource.uri))
    text = getattr(resource, "text", None)
    if isinstance(text, str):
        yield f"[resource {uri}]"
        yield text
    else:
        kind = _line(resource.mime_type or "of no given type")
        size = _size(getattr(resource, "blob", ""))
        yield f"[resource {uri}, {kind}, {size} bytes]"


def _says(text: str, structure: Any) -> bool:
    """Tell whether a text part holds the structure already, as servers are asked to have it."""
    is_wrapped = isinstance(structure, dict) and len(structure) == 1
    same = [structure, *structure.values()] if is_wrapped else [structure]
    if text in same:
        return True
    try:
        return json.loads(text) in same
    except (ValueError, RecursionError):
        return False


def _json(structure: Any) -> str:
    return json.dumps(structure, ensure_ascii=False)


def _line(text: str) -> str:
    return one_line(text, _SHOWN)


def _size(base64: str) -> int:
    return len(base64.rstrip("=")) * 3 // 4
