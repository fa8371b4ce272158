"""Puts another status into the text of a manifest and changes nothing else of it. Pure."""

import re
import tomllib
from collections.abc import Iterator, Mapping
from typing import Any, Final

from loopctl.domain import TaskStatus
from loopctl.tomlsource.read import BOM
from loopctl.tomlsource.scan import Places

_QUOTES: Final = ('"""', "'''", '"', "'")
_HEADER: Final = re.compile(r"^[ \t]*\[\[[ \t]*task[ \t]*\]\]", re.MULTILINE)
_STATUSES: Final = frozenset(str(status) for status in TaskStatus)


class WriteRefusedError(Exception):
    """The text cannot take the status as it stands now. ``args[0]`` says why."""


def find_task(document: Mapping[str, Any], task: str) -> int:
    """Return the index of the one table of ``[[task]]`` that has this id.

    Raises:
        WriteRefusedError: There is none, or more than one.
    """
    tables = document.get("task")
    found = [
        index
        for index, table in enumerate(tables if isinstance(tables, list) else ())
        if isinstance(table, dict) and table.get("id") == task
    ]
    if len(found) != 1:
        raise WriteRefusedError(f"{len(found) or 'no'} tasks have the id {task}")
    return found[0]


def status_of(document: Mapping[str, Any], index: int) -> TaskStatus:
    """Return the status that a task has now, its own or that of ``[defaults]``.

    Raises:
        WriteRefusedError: What stands there is no status; somebody is editing it.
    """
    defaults = document.get("defaults")
    inherited = defaults.get("status") if isinstance(defaults, dict) else None
    status = document["task"][index].get("status", inherited or TaskStatus.TODO)
    if not isinstance(status, str) or status not in _STATUSES:
        raise WriteRefusedError("its status in the file is not one that loop knows")
    return TaskStatus(status)


def with_status(
    text: str, document: Mapping[str, Any], index: int, status: TaskStatus
) -> tuple[str, dict[str, Any]]:
    """Return the text with that status, and the document that it holds then.

    Everything outside the value stays as it is: order, comments, spacing, line endings, a BOM.
    A task without a status gets a line of its own after its id, or a pair in its inline table.

    Args:
        text: Of the whole file, with its BOM where it has one.
        document: What ``text`` holds.
        index: Of the task, in the order of the file.
        status: To be written.

    Raises:
        WriteRefusedError: The result would not be that very document with that very status.
    """
    bom = BOM if text.startswith(BOM) else ""
    body = text[len(bom) :]
    tables = list(document["task"])
    tables[index] = {**tables[index], "status": str(status)}
    meant = {**document, "task": tables}
    for start, end, inner_index in _regions(body, index, len(tables)):
        try:
            region = _splice(body[start:end], inner_index, status)
        except (ValueError, RecursionError):  # the scanner was given half a string
            continue
        spliced = body[:start] + region + body[end:]
        # The proof: whatever the scanner took for the value, this is what a reader will find.
        if region and _holds(spliced, meant):
            return bom + spliced, meant
    raise WriteRefusedError("its place in the file was not understood")


def _regions(text: str, index: int, count: int) -> Iterator[tuple[int, int, int]]:
    """Yield where the task may be found: from, up to, and its index among the tasks in there.

    First what lies between two headers: a large file need not be scanned whole. A header inside a
    multi-line string would mislead; then the whole text comes next.
    """
    starts = [match.start() for match in _HEADER.finditer(text)]
    if len(starts) == count:
        yield starts[index], (*starts, len(text))[index + 1], 0
    yield 0, len(text), index


def _holds(text: str, document: Mapping[str, Any]) -> bool:
    try:
        return tomllib.loads(text) == document
    except (ValueError, RecursionError):
        return False


def _splice(text: str, index: int, status: TaskStatus) -> str:
    """Return the text with the status in it; empty where there is no place for it."""
    places = Places(text)
    present = places.find(("task", index, "status"))
    if present is not None and present.value is not None:
        start, end = present.value
        quote = next((quote for quote in _QUOTES if text.startswith(quote, start)), '"')
        return f"{text[:start]}{quote}{status}{quote}{text[end:]}"
    table, name = places.find(("task", index)), places.find(("task", index, "id"))
    if table is None or name is None or name.value is None:
        return ""
    end = name.value[1]
    if table.value is not None:
        return f'{text[:end]}, status = "{status}"{text[end:]}'
    return _with_line_after(text, name.start, end, f'status = "{status}"')


def _with_line_after(text: str, key_start: int, value_end: int, line: str) -> str:
    """Return ``text`` with one more line after the one that a value ends on, indented alike."""
    before = text[text.rfind("\n", 0, key_start) + 1 : key_start]
    indent = before if not before.strip() else ""
    newline = text.find("\n", value_end)
    if newline < 0:
        first = text.find("\n")
        ending = "\r\n" if first > 0 and text[first - 1] == "\r" else "\n"
        return f"{text}{ending}{indent}{line}"
    ending = "\r\n" if text[newline - 1] == "\r" else "\n"
    return f"{text[: newline + 1]}{indent}{line}{ending}{text[newline + 1 :]}"
