"""An interrupted step as bytes: LangGraph's own checkpoint of it, behind a header of JSON.

The header names the versions that wrote it and the call that waits. What another version wrote, or
what belongs to another call, is not read: the step is then taken again as a whole.
"""

import hashlib
import json
import sqlite3
import zlib
from functools import cache
from importlib.metadata import version
from typing import Any, Final

from loopctl import __version__

FORMAT: Final = 1
"""Of the header and of the state; another one is not read."""

_LIBRARIES: Final = ("langgraph", "langgraph-checkpoint", "langgraph-checkpoint-sqlite")


def freeze(connection: sqlite3.Connection, call_key: str) -> bytes:
    """Return what a saver has in ``connection``, for the step whose call ``call_key`` waits."""
    body = zlib.compress(connection.serialize(), level=1)
    header = _header(call_key) | {"sha256": hashlib.sha256(body).hexdigest()}
    return json.dumps(header, sort_keys=True).encode() + b"\n" + body


def thaw(connection: sqlite3.Connection, blob: bytes, call_key: str) -> bool:
    """Fill ``connection`` from ``blob``; return whether that could be done.

    Args:
        connection: Empty, in memory.
        blob: From :func:`freeze`, or anything else.
        call_key: Of the call that the step goes on with.
    """
    first, _, body = blob.partition(b"\n")
    try:
        header = json.loads(first)
    except ValueError:
        return False
    if header != _header(call_key) | {"sha256": hashlib.sha256(body).hexdigest()}:
        return False
    connection.deserialize(zlib.decompress(body))
    return True


def unpacked(blob: bytes) -> bytes:
    """Return the database that a blob of :func:`freeze` holds."""
    return zlib.decompress(blob.partition(b"\n")[2])


def _header(call_key: str) -> dict[str, Any]:
    return {"format": FORMAT, "call": call_key, "versions": _versions()}


@cache
def _versions() -> dict[str, str]:
    return {"loopctl": __version__} | {name: version(name) for name in _LIBRARIES}
