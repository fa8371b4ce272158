"""Judges calls of servers' tools by their names and arguments. Pure, and never raises."""

import re
import shlex
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Final

from loopctl.sandbox.floor import code
from loopctl.sandbox.floor.effects import DATABASE, HISTORY, INFRASTRUCTURE, KEYS, PUBLISH, PUSH
from loopctl.sandbox.floor.judge import judge
from loopctl.sandbox.floor.marks import HOME
from loopctl.sandbox.floor.paths import Place, is_secret, place
from loopctl.sandbox.floor.removal import REMOVES

_PARTS: Final = re.compile(r"[A-Z]+(?![a-z])|[A-Z]?[a-z]+|\d+")
_REMOVE: Final = frozenset(
    {"delete", "remove", "rm", "rmdir", "unlink", "destroy", "purge", "wipe"}
)
_ENDS: Final = _REMOVE | {"drop", "terminate", "truncate", "reset", "flush", "uninstall"}
_DATA: Final = frozenset(
    {
        "database",
        "databases",
        "db",
        "table",
        "tables",
        "schema",
        "collection",
        "collections",
        "index",
    }
    | {"keyspace", "tablespace"}
)
_THINGS: Final = frozenset(
    {"cluster", "namespace", "instance", "instances", "bucket", "stack", "project", "repository"}
    | {"repo", "volume", "environment", "server", "deployment", "workspace", "organization", "vm"}
    | {"pod", "resource", "resources", "infrastructure", "service", "function", "secret", "account"}
)
_PACKAGES: Final = frozenset(
    {"package", "packages", "npm", "pypi", "crate", "gem", "image", "module"}
)
_SHELL_KEYS: Final = frozenset({"command", "cmd", "script", "shell", "bash", "commands", "argv"})
_CODE_KEYS: Final = frozenset({"code", "python", "javascript", "source", "expression"})
_SQL_KEYS: Final = frozenset({"sql", "query", "statement", "statements", "queries"})
_DEPTH: Final = 12
_VALUES: Final = 2_000


def call_refusal(tool: str, arguments: Mapping[str, Any], roots: Sequence[str] = ()) -> str:
    """Return why a call of a server's tool is refused; empty where the floor allows it.

    Args:
        tool: The tool's own name.
        arguments: As the model gave them.
        roots: Absolute paths that are the worktree, or the sandbox's own scratch folder.
    """
    try:
        return _of_name(tool) or _of_arguments(tool, arguments, roots)
    except Exception as error:  # noqa: BLE001 - whatever is wrong with the reader must refuse
        return f"its arguments cannot be read: {type(error).__name__}"


def _words(tool: str) -> set[str]:
    return {word.lower() for word in _PARTS.findall(tool)}


def _of_name(tool: str) -> str:
    words = _words(tool)
    if words & _ENDS and words & _DATA:
        return f"{DATABASE} ({tool})"
    if words & _ENDS and words & _THINGS:
        return f"{INFRASTRUCTURE} ({tool})"
    if {"publish", "upload"} & words and words & _PACKAGES:
        return f"{PUBLISH} ({tool})"
    if "push" in words and (
        {"git", "force", "files", "commits", "branch"} & words or words == {"push"}
    ):
        return f"{PUSH} ({tool})"
    if (
        {"rewrite", "filter"} <= words
        or {"force", "update", "ref"} <= words
        or {"delete", "ref"} <= words
    ):
        return f"{HISTORY} ({tool})"
    return ""


def _of_arguments(tool: str, arguments: Mapping[str, Any], roots: Sequence[str]) -> str:
    removes = bool(_words(tool) & _REMOVE)
    command = arguments.get("command")
    extra = arguments.get("args")
    if isinstance(command, str) and isinstance(extra, list):
        arguments = {**arguments, "command": [command, *extra]}
    for count, (key, value) in enumerate(_texts(arguments, "", 0)):
        if count > _VALUES:
            return "its arguments are too many to be read"
        why = _of_text(key.lower(), value, roots, removes=removes)
        if why:
            return why
    return ""


def _of_text(key: str, value: str, roots: Sequence[str], *, removes: bool) -> str:
    if key in _SHELL_KEYS and (why := judge(value, roots).refusal):
        return why
    if key in _CODE_KEYS and (why := judge(f"python -c {shlex.quote(value)}", roots).refusal):
        return why
    if key in _SQL_KEYS and code.SQL.search(value):
        return DATABASE
    word = value.removeprefix("file://")
    word = HOME + word[1:] if word.startswith("~") else word
    if is_secret(word, "."):
        return KEYS
    if (
        removes
        and "\n" not in word
        and place(word, ".", roots) in {Place.OUTSIDE, Place.REPOSITORY}
    ):
        return REMOVES.format(Place.OUTSIDE.value)
    return ""


def _texts(value: object, key: str, depth: int) -> Iterator[tuple[str, str]]:
    """Yield every text in arguments, with the name that it stands under."""
    if depth > _DEPTH:
        raise OverflowError
    if isinstance(value, str):
        yield key, value
    elif isinstance(value, Mapping):
        for name, inner in value.items():
            yield from _texts(inner, str(name), depth + 1)
    elif isinstance(value, list | tuple):
        texts = [one for one in value if isinstance(one, str)]
        if key.lower() in _SHELL_KEYS and len(texts) == len(value):
            yield key, shlex.join(texts)
        for inner in value:
            yield from _texts(inner, "" if key.lower() in _SHELL_KEYS else key, depth + 1)
