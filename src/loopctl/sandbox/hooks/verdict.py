"""What a hook's end says of a call; everything that is not clearly a yes is a no. Pure."""

import json
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final

from loopctl.calls import Action, Ruling
from loopctl.domain import ExecResult
from loopctl.sandbox.hooks.form import PRE
from loopctl.sandbox.mcp.texts import printable

BLOCKS: Final = 2
"""The exit code by which a hook says no, with its reason on standard error."""

REASON_CHARS: Final = 2000

_SEVERITY: Final = (Action.ALLOW, Action.APPROVE, Action.DENY)
_DECISIONS: Final[Mapping[str, Action]] = {
    "allow": Action.ALLOW,
    "approve": Action.ALLOW,
    "ask": Action.APPROVE,
    "deny": Action.DENY,
    "block": Action.DENY,
}
_NEWER: Final = frozenset({"allow", "ask", "deny"})
_OLDER: Final = frozenset({"approve", "block"})
_SILENT: Final = "it gave no reason"


@dataclass(frozen=True, slots=True)
class Failure:
    """A hook could not be asked: the predicate of a sentence about it."""

    reason: str


def strictest(one: Ruling, other: Ruling) -> Ruling:
    """Return the stricter of two rulings, the first where they are alike."""
    return max(one, other, key=lambda ruling: _SEVERITY.index(ruling.action))


def verdict(ended: ExecResult) -> Ruling | Failure:
    """Return what a hook says by how it ended."""
    if ended.timed_out:
        return Failure("took longer than it may")
    if ended.returncode < 0:
        return Failure(f"was ended by signal {-ended.returncode}")
    said = _text(ended.stderr)
    if ended.returncode == BLOCKS:
        return Ruling(Action.DENY, said or _SILENT)
    if ended.returncode:
        return Failure(f"ended with exit code {ended.returncode}{f': {said}' if said else ''}")
    if ended.truncated:
        return Failure("said more than is read")
    if not ended.stdout.strip():
        return Ruling()
    try:
        document = json.loads(ended.stdout.decode("utf-8"))
    except (ValueError, RecursionError):
        return Failure("said what is no JSON")
    if not isinstance(document, dict):
        return Failure("said what is no JSON object")
    return _of_document(document)


def _of_document(document: Mapping[str, Any]) -> Ruling | Failure:
    own = document.get("hookSpecificOutput")
    own = {} if own is None else own
    if not isinstance(own, dict):
        return Failure("has a hookSpecificOutput that is no object")
    if own.get("hookEventName", PRE) != PRE:
        return Failure(f"answered another event than {PRE}")
    if own.get("updatedInput") is not None:
        return Failure("wants to change the call, which no hook can do here")
    if document.get("async"):
        return Failure("wants to go on in the background, and so decides nothing")
    return _strictest_of(
        _stopped(document),
        _decided(own, "permissionDecision", "permissionDecisionReason", _NEWER),
        _decided(document, "decision", "reason", _OLDER),
    )


def _stopped(document: Mapping[str, Any]) -> Ruling | Failure:
    goes_on = document.get("continue", True)
    if goes_on is True:
        return Ruling()
    if goes_on is False:
        return Ruling(Action.DENY, _text(document.get("stopReason")) or _SILENT)
    return Failure("has a continue that is neither true nor false")


def _decided(
    values: Mapping[str, Any], name: str, reason: str, known: frozenset[str]
) -> Ruling | Failure:
    word = values.get(name)
    if word is None:
        return Ruling()
    if not isinstance(word, str) or word not in known:
        return Failure(f"has a {name} that is none of {', '.join(sorted(known))}")
    return Ruling(_DECISIONS[word], _text(values.get(reason)) or _SILENT)


def _strictest_of(*found: Ruling | Failure) -> Ruling | Failure:
    came = Ruling()
    for one in found:
        if isinstance(one, Failure):
            return one
        came = strictest(came, one)
    return came


def _text(said: object) -> str:
    """Return what a hook said, printable and bounded; empty where it is no text."""
    if isinstance(said, bytes):
        said = said.decode("utf-8", "replace")
    return printable(said.strip(), REASON_CHARS) if isinstance(said, str) else ""
