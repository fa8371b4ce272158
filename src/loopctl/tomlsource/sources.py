"""Reads the sources of settings, the strongest last: files, environment, command line."""

import os
import tomllib
from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path
from typing import Any, Final

from pydantic import BaseModel

from loopctl.errors import Fault, FaultsError, SettingsError
from loopctl.tomlsource.layers import (
    Layer,
    dotted,
    errors_of,
    has,
    is_whole,
    laid_over,
    leaves,
    nested,
    why_of,
)
from loopctl.tomlsource.read import decode, parse, read_bytes
from loopctl.tomlsource.scan import Path as Keys
from loopctl.tomlsource.scan import Places
from loopctl.tomlsource.words import Guesses, show

ENVIRONMENT_PREFIX: Final = "LOOP_SET_"


class Source(StrEnum):
    """Where a value can come from, the weakest first."""

    DEFAULT = "default"
    PYPROJECT = "pyproject.toml"
    LOOP_TOML = "loop.toml"
    ENVIRONMENT = "environment"
    COMMAND_LINE = "command line"


_TABLES: Final[dict[Source, Keys]] = {
    Source.PYPROJECT: ("tool", "loopctl"),
    Source.LOOP_TOML: (),
}


@dataclass(frozen=True, slots=True)
class Origin:
    """Where a value came from.

    Attributes:
        place: ``loop.toml:12``, or the environment variable; empty for a default and for the
            command line.
    """

    source: Source
    place: str = ""

    def __str__(self) -> str:
        return self.place or str(self.source)


def read_sources(
    model: type[BaseModel],
    checkout: Path,
    environ: Mapping[str, str],
    overrides: Mapping[str, object],
) -> tuple[dict[str, Any], dict[tuple[str, ...], Origin]]:
    """Return the values of all sources laid over each other, and the origin of each.

    Args:
        model: What the values must fit.
        checkout: The folder of the files; a missing file says nothing.
        environ: Names that do not begin with ``LOOP_SET_`` are no settings.
        overrides: Of the command line, by dotted name; ``None`` means not given.

    Raises:
        SettingsError: All faults of all sources.
    """
    faults: list[Fault] = []
    found: dict[Source, Layer] = {}
    for source, keys in _TABLES.items():
        try:
            found[source] = _file_layer(checkout, source, keys)
        except FaultsError as exc:
            faults += exc.faults
    found[Source.ENVIRONMENT] = _environment_layer(environ)
    found[Source.COMMAND_LINE] = _command_line_layer(overrides)
    guesses = Guesses()
    for layer in found.values():
        faults += sorted(layer.faults(model, guesses), key=lambda fault: (fault.line, fault.path))
    values: dict[str, Any] = {}
    origins: dict[tuple[str, ...], Origin] = {}
    for source, layer in found.items():
        values = laid_over(values, layer.values)
        origins.update({leaf: _origin(source, layer, leaf) for leaf in leaves(layer.values)})
    if not faults:
        faults = _missing(model, values, found)
    if faults:
        raise SettingsError(*faults)
    return values, origins


def _file_layer(checkout: Path, source: Source, keys: Keys) -> Layer:
    shown_as = str(source)
    path = checkout / shown_as
    if not os.path.lexists(path):
        return Layer({}, lambda _: (shown_as, 0))
    content = read_bytes(path, shown_as, "it is a link to nothing")
    # A pyproject.toml that has nothing for loop is none of its business, broken or not.
    if keys and b"loopctl" not in content:
        return Layer({}, lambda _: (shown_as, 0))
    text = decode(content, shown_as)
    values: Any = parse(text, shown_as)
    places = Places(text)
    for depth, key in enumerate(keys, start=1):
        values = values.get(key, {})
        if not isinstance(values, dict):
            line = places.line(keys[:depth])
            raise FaultsError(Fault(shown_as, line, f"{key}: {show(values)} is no table"))
    return Layer(values, lambda path: (shown_as, places.line((*keys, *path))))


def _environment_layer(environ: Mapping[str, str]) -> Layer:
    values: dict[str, Any] = {}
    names: dict[Keys, str] = {}
    for name in sorted(environ):
        if name.startswith(ENVIRONMENT_PREFIX):
            keys = tuple(name.removeprefix(ENVIRONMENT_PREFIX).lower().split("__"))
            names[keys] = name
            values = laid_over(values, nested(keys, _environment_value(environ[name])))
    return Layer(values, lambda path: (_nearest(names, path), 0))


def _environment_value(text: str) -> object:
    """Return what ``text`` is as a TOML value, and the text itself where it is none."""
    try:
        document = tomllib.loads(f"value = {text}")
    except (ValueError, RecursionError):
        return text
    value = document.pop("value", text)
    is_plain = isinstance(value, str | int | float | list | dict) and not document
    return value if is_plain else text


def _nearest(names: Mapping[Keys, str], path: Keys) -> str:
    """Return the variable that set ``path``, something in it, or something around it."""
    for keys, name in names.items():
        if keys[: len(path)] == path or path[: len(keys)] == keys:
            return name
    return str(Source.ENVIRONMENT)


def _command_line_layer(overrides: Mapping[str, object]) -> Layer:
    values: dict[str, Any] = {}
    for name, value in overrides.items():
        if value is not None:
            values = laid_over(values, nested(tuple(name.split(".")), value))
    return Layer(values, lambda _: (str(Source.COMMAND_LINE), 0))


def _origin(source: Source, layer: Layer, leaf: tuple[str, ...]) -> Origin:
    if source is Source.COMMAND_LINE:
        return Origin(source)
    shown_as, line = layer.place(leaf)
    return Origin(source, f"{shown_as}:{line}" if line else shown_as)


def _missing(
    model: type[BaseModel], values: Mapping[str, Any], found: Mapping[Source, Layer]
) -> list[Fault]:
    """Return what only all sources together show, at the strongest that has the section.

    That is a value that none of them gives, and a section whose values do not go together.
    """
    faults: list[Fault] = []
    for error in errors_of(model, values):
        loc: Keys = tuple(error["loc"])
        section, why = (
            (loc, why_of(error)) if is_whole(error) else (loc[:-1], f"it needs {loc[-1]}")
        )
        having = [layer for layer in found.values() if has(layer.values, section)]
        shown_as, line = having[-1].place(section)
        faults.append(Fault(shown_as, line, f"{dotted(section)}: {why}"))
    return faults
