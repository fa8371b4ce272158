# ruff: noqa: INP001 - no package: Python imports it by name from a PYTHONPATH of this folder
"""Remembers what pytest, unittest and Python's builtins consist of, to say what was replaced.

Code under test runs in the process that judges it, and could put something of its own in the place
of what makes a test fail. What tests replace for a while is back in its place when they end.
"""

from __future__ import annotations

import sys
from typing import Any

_BUILTINS = "builtins"
_MOST = 20
_OF_PYTEST = "_pytest.config.Config._getini_unknown_type"
"""What pytest itself replaces while it starts, for options of an older kind."""

_held: dict[str, tuple[Any, ...]] = {}


def hold(*roots: str) -> None:
    """Remember the parts of those packages, and of the builtins, that are loaded and not yet held."""
    for name, part in _parts((_BUILTINS, *roots)):
        if name != _OF_PYTEST:
            _held.setdefault(name, _identity(part))


def replaced() -> list[str]:
    """Return the names of what is not what it was any more, the first in order."""
    now = dict(_parts({name.partition(".")[0] for name in _held}))
    nothing = object()
    return sorted(
        name for name, was in _held.items() if not _same(was, _identity(now.get(name, nothing)))
    )[:_MOST]


def _parts(roots: Any) -> Any:
    for name, module in list(sys.modules.items()):
        if name.partition(".")[0] not in roots:
            continue
        # Anything may stand there, even nothing.
        for key, value in list(getattr(module, "__dict__", {}).items()):
            if not callable(value):
                continue
            yield f"{name}.{key}", value
            if isinstance(value, type) and value.__module__ == name != _BUILTINS:
                for inner, member in list(vars(value).items()):
                    if callable(member) or isinstance(
                        member, (classmethod, staticmethod, property)
                    ):
                        yield f"{name}.{key}.{inner}", member


def _identity(part: Any) -> tuple[Any, ...]:
    function = getattr(part, "__func__", part)
    names = ("__code__", "__defaults__", "__kwdefaults__")
    return (part, *(getattr(function, name, None) for name in names))


def _same(was: tuple[Any, ...], now: tuple[Any, ...]) -> bool:
    return all(one is other for one, other in zip(was, now))  # noqa: B905 - of the same length, in any Python
