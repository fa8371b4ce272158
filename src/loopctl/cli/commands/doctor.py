"""``loop doctor``: the machine's tools, every setting with its origin, and what the gate notices."""

import json
from collections.abc import Mapping
from typing import TYPE_CHECKING, Annotated, Any, Final, NoReturn

import typer

from loopctl.cli.opening import Directory, Json, opened
from loopctl.cli.output import emit, emit_document
from loopctl.errors import UsageError

if TYPE_CHECKING:
    from loopctl.bootstrap import Project
    from loopctl.domain import Task
    from loopctl.given import Tool
    from loopctl.health import Remark
    from loopctl.judges.mutation import Mutant
    from loopctl.judges.sensitivity import Sensitivity
    from loopctl.settings import LoadedSettings

FAULTY = 2
_BLIND: Final = frozenset({"insensitive", "unknown"})


Gate = Annotated[
    bool,
    typer.Option(
        "--gate",
        help="Plant faults in what each task has done, and show whether its verify_cmd turns red.",
    ),
]
Tasks = Annotated[
    list[str] | None,
    typer.Argument(metavar="TASK...", help="With --gate: of these tasks only.", show_default=False),
]


def doctor(
    ctx: typer.Context,
    tasks: Tasks = None,
    gate: Gate = False,
    as_json: Json = False,
    directory: Directory = None,
) -> None:
    """Show the tools found and each setting with its origin; with --gate, what the gate notices."""
    from loopctl import bootstrap, health, settings

    if gate:
        _examine(opened(ctx, directory), tuple(tasks or ()), as_json=as_json)
    if tasks:
        raise UsageError(f"{tasks[0]}: doctor takes tasks only with --gate")
    found = bootstrap.tools()
    project = opened(ctx, directory)
    loaded = settings.load(project.checkout, {})
    remarks = health.remarks(loaded.settings, settings.environment(), project.checkout / ".local")
    if as_json:
        emit_document(_document(found, remarks, loaded))
    else:
        emit(_text(found, remarks, loaded))
    raise typer.Exit(0 if all(tool.is_usable for tool in found) else FAULTY)


def _values(loaded: "LoadedSettings") -> dict[str, Any]:
    tree = loaded.settings.model_dump(mode="json")
    return {name: _value(tree, name.split(".")) for name in loaded.origins}


def _value(tree: Mapping[str, Any], keys: list[str]) -> Any:
    """The value at a dotted name; a name may itself hold dots (a tool server's)."""
    for cut in range(len(keys), 0, -1):
        key = ".".join(keys[:cut])
        if key in tree:
            return _value(tree[key], keys[cut:]) if keys[cut:] else tree[key]
    return None


def _document(
    found: tuple["Tool", ...], remarks: tuple["Remark", ...], loaded: "LoadedSettings"
) -> dict[str, Any]:
    tools = {tool.name: {"found": tool.found, "usable": tool.is_usable} for tool in found}
    settings = {
        name: {"value": value, "origin": str(loaded.origins[name])}
        for name, value in _values(loaded).items()
    }
    return {
        "schema": 1,
        "tools": tools,
        "remarks": [
            {"about": one.name, "text": one.text, "warning": one.is_warning} for one in remarks
        ],
        "settings_hash": loaded.hash,
        "settings": settings,
    }


def _text(
    found: tuple["Tool", ...], remarks: tuple["Remark", ...], loaded: "LoadedSettings"
) -> str:
    from loopctl.report.escape import one_line

    lines = [
        f"{' ' if tool.is_usable else '!'} {tool.name}: {one_line(tool.found)}" for tool in found
    ]
    lines += [
        f"{'!' if one.is_warning else ' '} {one.name}: {one_line(one.text)}" for one in remarks
    ]
    values = _values(loaded)
    wide = max(map(len, values), default=0)
    for name, value in values.items():
        shown = json.dumps(value, ensure_ascii=False)
        lines.append(f"  {name:{wide}}  {one_line(shown)}  ({one_line(str(loaded.origins[name]))})")
    return "".join(f"{line}\n" for line in lines)


def _examine(project: "Project", tasks: tuple[str, ...], *, as_json: bool) -> NoReturn:
    """Print what became of the faults, a task at a time; a gate that misses them is a fault."""
    found = []
    for task, result in project.probe_gate(tasks):
        found.append((task, result))
        if not as_json:
            emit(_line(task, result))
    if as_json:
        emit_document({"schema": 1, "tasks": [_entry(task, result) for task, result in found]})
    elif not found:
        emit("the manifest has no task\n")
    is_blind = any(result.finding.value in _BLIND for _task, result in found)
    raise typer.Exit(FAULTY if is_blind else 0)


def _line(task: "Task", result: "Sensitivity") -> str:
    from loopctl.report.escape import one_line

    last = result.planted[-1] if result.planted else None
    match result.finding.value:
        case "sensitive" if last is not None:
            after = f" (fault {len(result.planted)})" if len(result.planted) > 1 else ""
            text = f"turns red{after}: {_fault(last)}"
        case "insensitive":
            text = "stays green: " + "; ".join(_fault(one) for one in result.planted)
        case "red":
            text = f"is red already: {result.reason}"
        case "none":
            text = result.reason
        case _:
            text = f"could not be tried: {result.reason}"
    mark = "!" if result.finding.value in _BLIND else " "
    return f"{mark} {one_line(f'{task.id} {text}')}\n"


def _fault(mutant: "Mutant") -> str:
    now = f"`{mutant.now}`" if mutant.now else "nothing"
    return f"{mutant.path}:{mutant.line} `{mutant.was}` -> {now}"


def _entry(task: "Task", result: "Sensitivity") -> dict[str, Any]:
    planted = [
        {"path": one.path, "line": one.line, "was": one.was, "now": one.now}
        for one in result.planted
    ]
    return {
        "id": task.id,
        "finding": result.finding.value,
        "planted": planted,
        "reason": result.reason,
    }
