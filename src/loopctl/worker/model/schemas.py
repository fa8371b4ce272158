"""The schema of a tool's arguments as it is sent, which every server has to understand."""

from collections.abc import Mapping
from typing import Any, Final

_LEFT_OUT: Final = frozenset({"pattern", "minLength", "maxLength"})
_NAMED_SCHEMAS: Final = frozenset(
    {"properties", "$defs", "definitions", "dependentSchemas", "patternProperties"}
)
"""Keywords below which keys are names, and values are schemas."""

_DATA: Final = frozenset({"const", "default", "enum", "examples"})
"""Keywords whose values are no schemas."""


def sent_schema(schema: Mapping[str, Any]) -> dict[str, Any]:
    """Return a tool's schema without the keywords that some servers refuse a whole request for.

    A server that turns schemas into grammars takes no pattern that is not anchored, and no text
    whose length is bounded by thousands. What is left out is checked here, on the arguments.
    """
    return {
        key: _sent(key, value)
        for key, value in schema.items()
        if not (key in _LEFT_OUT and isinstance(value, str | int))
    }


def _sent(key: str, value: Any) -> Any:
    if isinstance(value, Mapping):
        if key in _NAMED_SCHEMAS:
            return {name: _sent("", schema) for name, schema in value.items()}
        return dict(value) if key in _DATA else sent_schema(value)
    if isinstance(value, list | tuple) and key not in _DATA:
        return [_sent("", one) for one in value]
    return value
