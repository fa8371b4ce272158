"""Values of several sources laid over each other, and what a model has against them.

A layer is one source's nested table. Every value knows its place, so that a fault, and later a
reader, can be told where it came from.
"""

import json
import re
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from types import MappingProxyType
from typing import Any, Final, get_args

from pydantic import BaseModel, ValidationError
from pydantic_core import ErrorDetails

from loopctl.errors import Fault
from loopctl.tomlsource.scan import Path
from loopctl.tomlsource.sections import UNSHOWN
from loopctl.tomlsource.words import Guesses, show

UNTOLD: Final = frozenset({"missing", "incomplete"})
"""Errors that the values of another source may mend."""

_WHY: Final = MappingProxyType(
    {
        "int_type": "is no whole number",
        "int_from_float": "is no whole number",
        "float_type": "is no number",
        "bool_type": "is neither true nor false",
        "string_type": "is no text; write it in quotes",
        "tuple_type": "is no list; write [...]",
        "dict_type": "is no table",
        "model_type": "is no table",
        "finite_number": "is not finite",
        "string_too_short": "is empty",
        "too_short": "is empty",
        "greater_than_equal": "is less than {ge}",
        "greater_than": "is not more than {gt}",
        "less_than_equal": "is more than {le}",
        "literal_error": "is not one of {expected}",
        "enum": "is not one of {expected}",
        "string_pattern_mismatch": "is no name: letters, digits, '-' and single '_'",
        "value_error": "{error}",
    }
)


@dataclass(frozen=True, slots=True)
class Layer:
    """What one source says.

    Attributes:
        values: Nested tables; a value that is no table is a leaf.
        place: Returns the file (or whatever the source is) and the line of a path.
    """

    values: Mapping[str, Any]
    place: Callable[[Path], tuple[str, int]]

    def faults(self, model: type[BaseModel], guesses: Guesses) -> list[Fault]:
        """Return all that ``model`` has against the values, but for what another may still say."""
        return [
            _fault(model, error, self.place, guesses)
            for error in errors_of(model, self.values)
            if error["type"] not in UNTOLD
        ]


def errors_of(model: type[BaseModel], values: Mapping[str, Any]) -> list[ErrorDetails]:
    """Return pydantic's errors, none where the values are good."""
    try:
        model.model_validate(values)
    except ValidationError as exc:
        return exc.errors(include_url=False)
    return []


def laid_over(below: Mapping[str, Any], above: Mapping[str, Any]) -> dict[str, Any]:
    """Return the values of both; where both have one, that of ``above``. Tables are merged."""
    merged = dict(below)
    for key, value in above.items():
        old = merged.get(key)
        if isinstance(old, Mapping) and isinstance(value, Mapping):
            merged[key] = laid_over(old, value)
        else:
            merged[key] = value
    return merged


def nested(path: Path, value: object) -> dict[str, Any]:
    """Return a table in which ``path`` leads to ``value``."""
    for key in reversed(path):
        value = {str(key): value}
    return value if isinstance(value, dict) else {}


def leaves(values: Mapping[str, Any], path: tuple[str, ...] = ()) -> Iterator[tuple[str, ...]]:
    """Yield the path of every value that is no table, in order."""
    for key, value in values.items():
        if isinstance(value, Mapping):
            yield from leaves(value, (*path, key))
        else:
            yield (*path, key)


def differences(
    before: Mapping[str, Any], after: Mapping[str, Any]
) -> Iterator[tuple[str, str, str]]:
    """Yield what differs: its dotted name, and both values as JSON; ``not set`` for none."""
    old, new = (dict(_flat(values)) for values in (before, after))
    for name in dict.fromkeys((*new, *old)):
        if old.get(name) != new.get(name):
            yield name, _as_json(old.get(name)), _as_json(new.get(name))


def _flat(values: Mapping[str, Any], prefix: str = "") -> Iterator[tuple[str, object]]:
    for key, value in values.items():
        if isinstance(value, Mapping):
            yield from _flat(value, f"{prefix}{key}.")
        else:
            yield f"{prefix}{key}", value


def _as_json(value: object) -> str:
    return "not set" if value is None else json.dumps(value, ensure_ascii=False)


def has(values: Mapping[str, Any], path: Path) -> bool:
    """Tell whether ``path`` leads to something."""
    here: object = values
    for key in path:
        if not isinstance(here, Mapping) or key not in here:
            return False
        here = here[key]
    return True


def section_of(model: type[BaseModel], path: Path) -> type[BaseModel] | None:
    """Return the model of the table at ``path``, ``None`` where there is none."""
    here: type[BaseModel] | None = model
    skip = False
    for key in path:
        if skip:  # the name in a table of named sections
            skip = False
            continue
        field = here.model_fields.get(str(key)) if here else None
        here = model_in(field.annotation) if field else None
        skip = field is not None and is_named_table(field.annotation)
    return here


def model_in(annotation: object) -> type[BaseModel] | None:
    """Return the model that a field's annotation is, allows, or has as its named sections."""
    if isinstance(annotation, type) and issubclass(annotation, BaseModel):
        return annotation
    found = (model_in(inner) for inner in get_args(annotation))
    return next((model for model in found if model), None)


def is_named_table(annotation: object) -> bool:
    """Tell whether a field is a table of sections whose names the user chooses."""
    return getattr(annotation, "__origin__", None) is dict


def _fault(
    model: type[BaseModel],
    error: ErrorDetails,
    place: Callable[[Path], tuple[str, int]],
    guesses: Guesses,
) -> Fault:
    path: Path = tuple(part for part in error["loc"] if part != "[key]")
    shown_as, line = place(path)
    return Fault(shown_as, line, f"{dotted(path)}: {_sentence(model, path, error, guesses)}")


def is_whole(error: ErrorDetails) -> bool:
    """Tell whether an error is about a section as a whole, not about one of its values."""
    return error["type"] in {"value_error", "incomplete"} and isinstance(error["input"], Mapping)


def why_of(error: ErrorDetails) -> str:
    """Return what an error about a section as a whole says."""
    return str(error.get("ctx", {}).get("error", error["msg"]))


def _sentence(model: type[BaseModel], path: Path, error: ErrorDetails, guesses: Guesses) -> str:
    if error["type"] == "extra_forbidden":
        return "unknown setting" + _hint(model, path, guesses)
    if error["type"] == UNSHOWN:
        return error["msg"]
    context = {key: str(value) for key, value in error.get("ctx", {}).items()}
    known = re.findall(r"'([^']*)'", context.get("expected", ""))
    words = {**context, "expected": ", ".join(known)}
    template = _WHY.get(error["type"])
    why = template.format(**words).removesuffix(".0") if template else error["msg"]
    value = error["input"]
    if is_whole(error):
        return why
    hint = guesses.hint(value, known) if known and isinstance(value, str) else ""
    return f"{show(value)} {why}{hint}"


def _hint(model: type[BaseModel], path: Path, guesses: Guesses) -> str:
    word = str(path[-1])
    elsewhere = [
        f"{section}.{key}"
        for section, field in model.model_fields.items()
        for key in (model_in(field.annotation) or BaseModel).model_fields
        if key == word
    ]
    if elsewhere:
        return f" (did you mean {show(elsewhere[0])}?)"
    section = section_of(model, path[:-1])
    return guesses.hint(word, tuple(section.model_fields)) if section else ""


def table(model: type[BaseModel], path: str = "") -> list[tuple[str, str, str]]:
    """Return every leaf of a model: dotted name, default as TOML (empty for none), description.

    A name that the user chooses stands as ``NAME``.
    """
    rows: list[tuple[str, str, str]] = []
    for key, field in model.model_fields.items():
        section = model_in(field.annotation)
        if section is None:
            default = field.get_default(call_default_factory=True)
            shown = "" if field.is_required() or default is None else as_toml(default)
            rows.append((path + key, shown, field.description or ""))
        else:
            name = ".NAME." if is_named_table(field.annotation) else "."
            rows += table(section, path + key + name)
    return rows


def as_toml(value: object) -> str:
    """Return a default as it would stand in the file."""
    if value == {}:
        return "{}"
    if isinstance(value, tuple):
        return f"[{', '.join(as_toml(element) for element in value)}]"
    if isinstance(value, float) and value.is_integer():
        return str(int(value)) if value else "0"
    return show(value)


def dotted(path: Path) -> str:
    """Return a path as settings are named: ``sandbox.share[1]``."""
    text = ""
    for part in path:
        if isinstance(part, int):
            text += f"[{part}]"
        else:
            text += ("." if text else "") + show(part)[1:-1]
    return text
