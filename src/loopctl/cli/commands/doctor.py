"""``loop doctor``: the machine's tools, and every setting with where it comes from."""

import json
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import typer

from loopctl.cli.opening import Directory, Json, opened
from loopctl.cli.output import emit, emit_document

if TYPE_CHECKING:
    from loopctl.bootstrap import Tool
    from loopctl.settings import LoadedSettings

FAULTY = 2


def doctor(ctx: typer.Context, as_json: Json = False, directory: Directory = None) -> None:
    """Show the tools found and each setting with its origin."""
    from loopctl import bootstrap, settings

    found = bootstrap.tools()
    loaded = settings.load(opened(ctx, directory).checkout, {})
    if as_json:
        emit_document(_document(found, loaded))
    else:
        emit(_text(found, loaded))
    raise typer.Exit(0 if all(tool.is_usable for tool in found) else FAULTY)


def _values(loaded: "LoadedSettings") -> dict[str, Any]:
    tree = json.loads(loaded.json)
    return {name: _value(tree, name.split(".")) for name in loaded.origins}


def _value(tree: Mapping[str, Any], keys: list[str]) -> Any:
    """The value at a dotted name; a name may itself hold dots (a tool server's)."""
    for cut in range(len(keys), 0, -1):
        key = ".".join(keys[:cut])
        if key in tree:
            return _value(tree[key], keys[cut:]) if keys[cut:] else tree[key]
    return None


def _document(found: tuple["Tool", ...], loaded: "LoadedSettings") -> dict[str, Any]:
    tools = {tool.name: {"found": tool.found, "usable": tool.is_usable} for tool in found}
    settings = {
        name: {"value": value, "origin": str(loaded.origins[name])}
        for name, value in _values(loaded).items()
    }
    return {"schema": 1, "tools": tools, "settings_hash": loaded.hash, "settings": settings}


def _text(found: tuple["Tool", ...], loaded: "LoadedSettings") -> str:
    from loopctl.report.escape import one_line

    lines = [
        f"{' ' if tool.is_usable else '!'} {tool.name}: {one_line(tool.found)}" for tool in found
    ]
    values = _values(loaded)
    wide = max(map(len, values), default=0)
    for name, value in values.items():
        shown = json.dumps(value, ensure_ascii=False)
        lines.append(f"  {name:{wide}}  {one_line(shown)}  ({one_line(str(loaded.origins[name]))})")
    return "".join(f"{line}\n" for line in lines)
