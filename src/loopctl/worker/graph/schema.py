"""The arguments of a call as the model wrote them: read, and checked against the tool's schema."""

import json
import re
from collections.abc import Mapping
from functools import lru_cache
from typing import Any, Final, NoReturn

import jsonschema  # type: ignore[import-untyped] # it has no types
from jsonschema.validators import validator_for  # type: ignore[import-untyped]
from referencing import Registry
from referencing.exceptions import Unresolvable

from loopctl.calls import canonical
from loopctl.fencing import clean, one_line

_SHOWN: Final = 300
"""Bytes of an error that a model is shown; it holds what the model wrote."""


class WrongArgumentsError(Exception):
    """What is wrong with a call's arguments; goes back to the model, never out of this package."""


def read_arguments(text: str) -> Mapping[str, Any]:
    """Return what ``text`` says, a JSON object; an empty text says an empty one.

    Raises:
        WrongArgumentsError: It is no JSON object.
    """
    if not text.strip():
        return {}
    try:
        value = json.loads(text, parse_constant=_refuse)
        canonical(value)
    except (ValueError, RecursionError) as error:
        shown = one_line(clean(str(error)), _SHOWN)
        raise WrongArgumentsError(f"the arguments are no JSON ({shown})") from error
    if not isinstance(value, dict):
        raise WrongArgumentsError("the arguments are no JSON object")
    return value


def check_arguments(arguments: Mapping[str, Any], schema: Mapping[str, Any]) -> None:
    """Return when the arguments fit the schema; a schema that cannot be used lets all pass.

    The tool has the last word on its arguments: this check is there to tell a model early, and
    in words, what it got wrong.

    Raises:
        WrongArgumentsError: They do not fit; says where and why.
    """
    validator = _validator(json.dumps(schema, sort_keys=True))
    if validator is None:
        return
    try:
        error = jsonschema.exceptions.best_match(validator.iter_errors(arguments))
    except (Unresolvable, re.error, RecursionError):
        return
    if error is not None:
        place = "".join(f"[{part!r}]" for part in error.absolute_path)
        shown = one_line(clean(error.message), _SHOWN)
        where = f" at {place}" if place else ""
        raise WrongArgumentsError(f"the arguments do not fit the tool's schema{where}: {shown}")


def _refuse(constant: str) -> NoReturn:
    raise ValueError(f"{constant} is no JSON")


@lru_cache(maxsize=512)
def _validator(schema_json: str) -> Any:
    """Return what checks against a schema; ``None`` where the schema is none."""
    schema = json.loads(schema_json)
    kind = validator_for(schema, default=jsonschema.Draft202012Validator)
    try:
        kind.check_schema(schema)
    except (jsonschema.SchemaError, re.error, RecursionError):
        return None
    # A registry of our own: the library's default one would fetch what a schema refers to.
    return kind(schema, registry=Registry())
