"""What a server lists: the tools' names in this house, and what has changed since the first time.

Descriptions and schemas are instructions to a model. What was pinned once is what counts: a tool
that says something else later is not called before a person has approved what it says now.
"""

import hashlib
import json
import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any, Final

from loopctl.calls import Annotations, ToolSpec, canonical
from loopctl.errors import EnvironmentFaultError
from loopctl.fencing import fence
from loopctl.sandbox.mcp.texts import one_line, printable, printable_schema

MAX_TOOLS: Final = 256
"""Of one server; more than a model can be shown."""
MAX_DESCRIPTION: Final = 4096
"""Characters of a description that a model is shown."""
MAX_SCHEMA_BYTES: Final = 64 << 10
MAX_NAME: Final = 64
"""Characters that providers of models allow a tool's name."""
UNSEEN: Final = "A new tool that nobody has looked at yet; a call of it asks a person first."
_MAX_OWN_NAME: Final = 256
_SHOWN: Final = 80


@dataclass(frozen=True, slots=True)
class ListedTool:
    """A tool as its server lists it.

    Attributes:
        name: The server's own.
        parameters: A JSON schema of the arguments.
    """

    name: str
    description: str
    parameters: Mapping[str, Any]
    annotations: Annotations


def named(server: str, listed: Iterable[ListedTool]) -> dict[str, ListedTool]:
    """Return the tools by their names in this house, in the order of those.

    Raises:
        EnvironmentFaultError: Two tools would have one name, or one has none or too large a
            schema; says which.
    """
    found: dict[str, ListedTool] = {}
    for tool in listed:
        shown = one_line(tool.name, _SHOWN)
        if not tool.name.strip() or len(tool.name) > _MAX_OWN_NAME:
            raise EnvironmentFaultError(f"lists a tool that has no usable name ({shown!r})")
        if len(canonical(dict(tool.parameters))) > MAX_SCHEMA_BYTES:
            raise EnvironmentFaultError(
                f"lists the tool {shown!r} with a schema of more than {MAX_SCHEMA_BYTES} bytes"
            )
        name = tool_name(server, tool.name)
        if name in found:
            other = one_line(found[name].name, _SHOWN)
            raise EnvironmentFaultError(
                f"lists the tools {other!r} and {shown!r}, which would both be called {name}"
            )
        found[name] = tool
    return dict(sorted(found.items()))


def tool_name(server: str, tool: str) -> str:
    """Return ``mcp__SERVER__TOOL``: letters, digits, ``_`` and ``-``, at most ``MAX_NAME``.

    Other characters become ``_``; the end of a name that is too long becomes a hash of it.
    """
    name = f"mcp__{server}__{re.sub('[^A-Za-z0-9_-]', '_', tool)}"
    if len(name) <= MAX_NAME:
        return name
    mark = hashlib.sha256(f"{server}\0{tool}".encode("utf-8", "surrogatepass")).hexdigest()[:8]
    return f"{name[: MAX_NAME - 9]}_{mark}"


def kept(tool: ListedTool) -> str:
    """Return a tool as it is pinned: JSON of one form, so that equal texts are equal tools."""
    claims = tool.annotations
    return canonical(
        {
            "name": tool.name,
            "description": tool.description,
            "parameters": dict(tool.parameters),
            "annotations": [claims.read_only, claims.destructive, claims.idempotent],
        }
    ).decode("utf-8", "surrogatepass")


def taken_up(text: str) -> ListedTool | None:
    """Return the tool that was pinned as ``text``; ``None`` where it is none."""
    try:
        raw = json.loads(text)
        claims = Annotations(*map(bool, raw["annotations"]))
        return ListedTool(raw["name"], raw["description"], raw["parameters"], claims)
    except (ValueError, TypeError, KeyError):
        return None


def mark(tool: ListedTool) -> str:
    """Return the hash of all that is kept of a tool, by which a person approves it."""
    return hashlib.sha256(kept(tool).encode("utf-8", "surrogatepass")).hexdigest()


def unseen(tool: ListedTool) -> ListedTool:
    """Return what is shown of a tool that is not pinned: nothing that its server says of it."""
    return ListedTool(tool.name, UNSEEN, {"type": "object"}, Annotations())


def spec(name: str, tool: ListedTool) -> ToolSpec:
    """Return what a model is told of a tool: printable, bounded, its description fenced as data."""
    schema = printable_schema(dict(tool.parameters))
    return ToolSpec(
        name=name,
        description=fence(printable(tool.description, MAX_DESCRIPTION), "words of the server"),
        parameters={**schema, "type": "object"},
    )


def change(first: ListedTool, now: ListedTool | None) -> str:
    """Return what differs from the first listing, in a few words; empty where nothing does."""
    if now is None:
        return "it is not listed any more"
    parts = {
        "its name": (first.name, now.name),
        "its description": (first.description, now.description),
        "the schema of its arguments": (
            canonical(dict(first.parameters)),
            canonical(dict(now.parameters)),
        ),
        "its annotations": (first.annotations, now.annotations),
    }
    changed = [what for what, (before, after) in parts.items() if before != after]
    return f"{' and '.join(changed)} changed" if changed else ""
