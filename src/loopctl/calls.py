"""Calls of tools: what is asked for, what comes back, and by what a call is known again.

A call is known by its session, its iteration and its ordinal, which the harness gives when it
saves the message that asks for the call: providers send ids that are empty, repeated or, after a
second sampling, new. Its key is also what a tool hands on to a sink that keeps keys of its own.
"""

import hashlib
import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from functools import cached_property
from typing import Any, Final

MAX_RESULT_BYTES: Final = 64 * 1024
"""Of a result's text in UTF-8: what a model is shown of one, and so what is kept of it."""


class Effect(StrEnum):
    """Where a tool's effects are; said by the tool's own metadata, never by who calls it."""

    NONE = "none"
    """It only reads: a call may be repeated at will."""
    INSIDE = "inside"
    """In the worktree: undone when the step is taken again, so it has to be done again then."""
    OUTSIDE = "outside"
    """Beyond the sandbox: cannot be undone, so it must not be done twice."""


class Outcome(StrEnum):
    """What a tool knows of an effect for which it has no result."""

    ABSENT = "absent"
    """It surely did not happen, and will not happen any more."""
    UNKNOWN = "unknown"
    """It may or may not have happened."""


def canonical(value: object) -> bytes:
    """Return ``value`` as JSON of one form: equal values give equal bytes, others never do.

    Raises:
        ValueError: It is nothing that JSON can say: a number that is not finite, a key that is
            no text, some other type.
    """
    try:
        text = json.dumps(
            value, ensure_ascii=False, sort_keys=True, allow_nan=False, separators=(",", ":")
        )
        is_same = json.loads(text) == value
    except (TypeError, RecursionError, ValueError) as exc:
        raise ValueError(f"no JSON: {exc}") from exc
    if not is_same:
        raise ValueError("no JSON: it does not come back as it was written")
    return text.encode("utf-8", "surrogatepass")


def call_key(session_id: str, iteration: int, ordinal: int) -> str:
    """Return the idempotency key of a call: 64 hexadecimal digits, different for each call."""
    return hashlib.sha256(canonical([session_id, iteration, ordinal])).hexdigest()


@dataclass(frozen=True)
class ToolCall:
    """One call of one tool.

    Attributes:
        iteration: Of the session; the step that makes the call.
        ordinal: From 0, over the whole iteration; given by the harness.
        arguments: JSON values.
    """

    session_id: str
    iteration: int
    ordinal: int
    tool: str
    arguments: Mapping[str, Any] = field(default_factory=dict)

    @cached_property
    def key(self) -> str:
        """By which the call is known again, here and at the tool."""
        return call_key(self.session_id, self.iteration, self.ordinal)

    @cached_property
    def arguments_json(self) -> str:
        """The arguments as canonical JSON.

        Raises:
            ValueError: JSON cannot say them.
        """
        return canonical(dict(self.arguments)).decode("utf-8", "surrogatepass")

    @cached_property
    def arguments_hash(self) -> str:
        """SHA-256 of the canonical arguments, hexadecimal.

        Raises:
            ValueError: JSON cannot say them.
        """
        return hashlib.sha256(canonical(dict(self.arguments))).hexdigest()


@dataclass(frozen=True, slots=True)
class ToolResult:
    """What a call came to, as the worker is shown it.

    Attributes:
        is_error: The call failed, or was refused; the text says why.
        replayed: It was recorded before; nothing was run now.
    """

    content: str
    is_error: bool = False
    replayed: bool = False


_MARK_BYTES: Final = 40
"""What the line that says how much is missing takes at most."""


def bounded(text: str) -> str:
    """Return ``text`` in at most ``MAX_RESULT_BYTES``, its middle replaced by how much is missing.

    What was cut once is not cut again.
    """
    encoded = text.encode("utf-8", "surrogatepass")
    if len(encoded) <= MAX_RESULT_BYTES:
        return text
    half = (MAX_RESULT_BYTES - _MARK_BYTES) // 2
    head = encoded[:half].decode("utf-8", "ignore")
    tail = encoded[-half:].decode("utf-8", "ignore")
    return f"{head}\n[{len(encoded) - 2 * half} bytes left out]\n{tail}"


@dataclass(frozen=True, slots=True)
class ToolSpec:
    """What a model is told of a tool.

    Attributes:
        parameters: A JSON schema of the arguments, an object.
    """

    name: str
    description: str
    parameters: Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class Annotations:
    """What a tool's maker claims of it: hints for the policy, and no more than claims.

    What is not claimed counts as the worst: such a tool writes, destroys, and is not to be repeated.

    Attributes:
        read_only: It changes nothing.
        destructive: It may change or remove what is there, and not only add.
        idempotent: A second equal call changes nothing more.
    """

    read_only: bool = False
    destructive: bool = True
    idempotent: bool = False


# --- what a reservation finds ------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Fresh:
    """Never seen before: the intent is written, the call may be run, once."""


@dataclass(frozen=True, slots=True)
class Recorded:
    """Run before, with this result."""

    result: ToolResult


@dataclass(frozen=True, slots=True)
class Unknown:
    """Begun before (ISO 8601, UTC), and nobody knows what came of it."""

    since: str


@dataclass(frozen=True, slots=True)
class Unapproved:
    """A person has to approve it first; nothing was written. ``reason`` is one line."""

    reason: str


Reserved = Fresh | Recorded | Unknown | Unapproved


# --- what the proxy answers where there is no result -------------------------------------------


@dataclass(frozen=True, slots=True)
class ApprovalRequired:
    """The call was not run: a person has to approve it first."""

    call: ToolCall
    reason: str = ""


@dataclass(frozen=True, slots=True)
class OutcomeUnknown:
    """The call was begun at ``since`` and may or may not have happened: a person has to look."""

    call: ToolCall
    since: str


Waiting = ApprovalRequired | OutcomeUnknown
"""Why a call has no result before a person has decided something."""


class Action(StrEnum):
    """What the policy says of a call."""

    ALLOW = "allow"
    APPROVE = "approve"
    DENY = "deny"


@dataclass(frozen=True, slots=True)
class Ruling:
    """What the policy says of a call, and why (one line)."""

    action: Action = Action.ALLOW
    reason: str = ""
