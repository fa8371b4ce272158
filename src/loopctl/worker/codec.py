"""Frames as lines: JSON that names the type of what it carries.

``{"talk": 3, "ask": 0, "is": "TodoDone", "body": {"summary": "..."}}``. Bytes are base64. Text
may hold surrogates, since file names and the output of programs do; they come back as they were.
"""

import base64
import json
from collections.abc import Hashable, Mapping
from functools import cache
from types import GenericAlias, UnionType
from typing import Any, Final, get_args

from pydantic import ConfigDict, TypeAdapter, ValidationError

from loopctl.errors import EnvironmentFaultError
from loopctl.worker.protocol import Frame, ToChild, ToEngine

_CONFIG: Final = ConfigDict(extra="forbid", val_json_bytes="base64")


def encode(frame: Frame[ToChild | ToEngine]) -> bytes:
    """Return the frame as one line without its end.

    Raises:
        ValueError: It holds something that JSON cannot say.
    """
    kind: type = type(frame.body)
    (body,) = _adapter(kind).dump_python((frame.body,), warnings=False)
    line = {"talk": frame.talk, "ask": frame.ask, "is": kind.__name__, "body": body}
    try:
        text = json.dumps(line, ensure_ascii=False, separators=(",", ":"), default=_base64)
    except (TypeError, RecursionError) as exc:
        raise ValueError(f"a {kind.__name__} cannot be said in JSON: {exc}") from exc
    return text.encode("utf-8", "surrogatepass")


def decode_for_child(line: bytes) -> Frame[ToChild]:
    """Return what the engine has said.

    Raises:
        EnvironmentFaultError: It is nothing that this side understands.
    """
    return _decode(line, _names(ToChild), "the engine")


def decode_for_engine(line: bytes) -> Frame[ToEngine]:
    """Return what the child has said.

    Raises:
        EnvironmentFaultError: It is nothing that this side understands.
    """
    return _decode(line, _names(ToEngine), "the model worker's process")


def _decode(line: bytes, names: Mapping[str, type], speaker: str) -> Frame[Any]:
    try:
        raw = json.loads(line.decode("utf-8", "surrogatepass"))
        kind = names.get(raw["is"])
        if kind is None:
            raise ValueError(f"unknown message {raw['is']!r}")  # noqa: TRY301 - told as the others are
        (body,) = _adapter(kind).validate_python((raw["body"],))
        return Frame(talk=int(raw["talk"]), ask=int(raw["ask"]), body=body)
    except (ValueError, TypeError, KeyError, RecursionError) as exc:
        why = _first_error(exc) if isinstance(exc, ValidationError) else f"{exc!r}"
        raise EnvironmentFaultError(
            f"{speaker} said what this loop does not understand: {why}, in the line "
            f"{line[:80]!r}; the two must be of the same version of loop"
        ) from exc


def _first_error(fault: ValidationError) -> str:
    first = fault.errors(include_url=False, include_input=False, include_context=False)[0]
    return f"{first['msg']} at {'.'.join(str(step) for step in first['loc'][1:])}"


def _base64(value: object) -> str:
    if isinstance(value, bytes):
        return base64.b64encode(value).decode()
    raise TypeError(f"a {type(value).__name__} is no JSON")


@cache
def _adapter(kind: Hashable) -> TypeAdapter[tuple[Any]]:
    # A dataclass takes no configuration of its adapter; a tuple hands it on to what it holds.
    held: Any = GenericAlias(tuple, (kind,))
    return TypeAdapter(held, config=_CONFIG)


@cache
def _names(side: UnionType) -> Mapping[str, type]:
    return {kind.__name__: kind for kind in get_args(side)}
