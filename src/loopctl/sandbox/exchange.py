"""The folder through which a running step and the harness speak, outside the worktree."""

import json
import os
import stat
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path

from loopctl.domain import Assumption, DecisionDraft, DecisionKind, Option, Proposal
from loopctl.sandbox.files import disk_errors, remove_tree, write_if_changed
from loopctl.steps import (
    Assumed,
    Deferred,
    ForkRaised,
    Message,
    MessageMalformed,
    PremiseInvalid,
    Proposed,
    TodoDone,
)

MAX_MESSAGE_BYTES = 1 << 20
MAX_MESSAGES = 100

_Fields = Mapping[str, object]

FORMS: Mapping[str, str] = {
    "defer": '{"type": "defer", "reason": "...", "decision_needed": "...", "best_guess": "..."}',
    "fork": (
        '{"type": "fork", "question": "...", "bucket": "quality|scope|external", '
        '"options": [{"name": "...", "prompt": "..."}], "best_guess": "..."}'
    ),
    "premise_invalid": '{"type": "premise_invalid", "claim": "...", "evidence": "..."}',
    "assumption": '{"type": "assumption", "text": "...", "decision": "..."}',
    "propose": (
        '{"type": "propose", "title": "...", "prompt": "...", "verify_cmd": "...", '
        '"serves": "a done-criterion of the goal", "deps": ["..."]}'
    ),
    "todo_done": '{"type": "todo_done", "summary": "..."}',
}
"""The accepted form of each message, shown to a worker that got it wrong."""

_BUCKETS = ("quality", "scope", "external")


class _WrongError(Exception):
    """What is wrong with a message; never leaves this module."""


class OutboxExchange:
    """``LOOP_OBSERVATION`` and ``LOOP_OUTBOX`` of one sandbox's steps."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self._outbox = folder / "outbox"
        self._observation = folder / "observation.txt"

    @property
    def env(self) -> Mapping[str, str]:
        """The variables that name both."""
        return {"LOOP_OBSERVATION": str(self._observation), "LOOP_OUTBOX": str(self._outbox)}

    def offer(self, observation: str) -> None:
        """Write the observation for the next step and empty the outbox."""
        with disk_errors(f"the exchange folder {self.folder} could not be made"):
            self.folder.mkdir(mode=0o700, parents=True, exist_ok=True)
            remove_tree(self._outbox)
            self._outbox.mkdir(mode=0o700)
            if self._observation.is_dir():
                remove_tree(self._observation)
            write_if_changed(self._observation, observation.encode(errors="replace"))

    def messages(self) -> Iterator[Message]:
        """Yield what the worker has put in the outbox, in the order of the file names.

        What is no message is a ``MessageMalformed`` that says what was wrong and what is accepted.
        """
        try:
            names = sorted(os.listdir(self._outbox))  # noqa: PTH208 - names alone
        except OSError:
            return
        for name in names[:MAX_MESSAGES]:
            # A writer renames its file when it is whole: what starts with a dot is not.
            if not name.startswith("."):
                yield self._message(name)
        if len(names) > MAX_MESSAGES:
            yield MessageMalformed(
                f"the outbox holds {len(names)} files; only the first {MAX_MESSAGES} were read"
            )

    def _message(self, name: str) -> Message:
        try:
            return _parse(_read(self._outbox / name))
        except _WrongError as wrong:
            return MessageMalformed(f"{ascii(name)[1:-1]}: {wrong}")


def _read(path: Path) -> str:
    try:
        # Not followed where it is a link, and not waited for where it is a pipe.
        descriptor = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC)
    except OSError as error:
        raise _WrongError(f"a message is an ordinary file ({error.strerror})") from error
    try:
        if not stat.S_ISREG(os.fstat(descriptor).st_mode):
            raise _WrongError("a message is an ordinary file")
        with os.fdopen(descriptor, "rb", closefd=False) as file:
            content = file.read(MAX_MESSAGE_BYTES + 1)
    finally:
        os.close(descriptor)
    if len(content) > MAX_MESSAGE_BYTES:
        raise _WrongError(f"a message has at most {MAX_MESSAGE_BYTES} bytes")
    try:
        return content.decode("utf-8")
    except UnicodeDecodeError as error:
        raise _WrongError(f"a message is UTF-8 text (byte {error.start} is not)") from error


def _parse(text: str) -> Message:
    try:
        fields = json.loads(text)
    except (ValueError, RecursionError) as error:
        raise _WrongError(f"no JSON ({error}); accepted: {_all_forms()}") from error
    if not isinstance(fields, dict):
        raise _WrongError(f"a message is one JSON object; accepted: {_all_forms()}")
    kind = fields.pop("type", None)
    if not isinstance(kind, str) or kind not in _PARSERS:
        raise _WrongError(f"unknown type {_shown(kind)}; accepted: {_all_forms()}")
    try:
        return _PARSERS[kind](fields)
    except _WrongError as wrong:
        raise _WrongError(f"{wrong}; accepted: {FORMS[kind]}") from wrong


def _all_forms() -> str:
    return " or ".join(FORMS.values())


def _defer(fields: _Fields) -> Message:
    _only(fields, "reason", "decision_needed", "best_guess")
    return Deferred(
        DecisionDraft(
            # A worker defers what it cannot settle itself; the strictest kind, until the engine
            # knows better.
            kind=DecisionKind.EXTERNAL,
            question=_text(fields, "decision_needed"),
            best_guess=_text(fields, "best_guess", default=""),
            reason=_text(fields, "reason", default=""),
        )
    )


def _fork(fields: _Fields) -> Message:
    _only(fields, "question", "bucket", "options", "best_guess")
    bucket = _text(fields, "bucket")
    if bucket not in _BUCKETS:
        raise _WrongError(f"bucket is {_shown(bucket)}")
    listed = fields.get("options")
    if not isinstance(listed, list) or not listed:
        raise _WrongError("options is a list of at least one option")
    options = tuple(_option(item) for item in listed)
    if len({option.name for option in options}) < len(options):
        raise _WrongError("two options have the same name")
    guess = _text(fields, "best_guess", default="")
    return ForkRaised(_text(fields, "question"), bucket, options, guess)


def _option(item: object) -> Option:
    if not isinstance(item, dict):
        raise _WrongError("an option is an object")
    _only(item, "name", "prompt")
    return Option(_text(item, "name"), _text(item, "prompt", default=""))


def _premise(fields: _Fields) -> Message:
    _only(fields, "claim", "evidence")
    return PremiseInvalid(_text(fields, "claim"), _text(fields, "evidence"))


def _assumption(fields: _Fields) -> Message:
    _only(fields, "text", "decision")
    return Assumed(Assumption(_text(fields, "text"), _text(fields, "decision", default="")))


def _propose(fields: _Fields) -> Message:
    _only(fields, "title", "prompt", "verify_cmd", "serves", "deps")
    deps = fields.get("deps", [])
    if not isinstance(deps, list) or not all(isinstance(dep, str) for dep in deps):
        raise _WrongError("deps is a list of ids")
    title, prompt = _text(fields, "title"), _text(fields, "prompt")
    verify_cmd, serves = _text(fields, "verify_cmd"), _text(fields, "serves")
    return Proposed(Proposal(title, prompt, verify_cmd, serves, tuple(deps)))


def _todo_done(fields: _Fields) -> Message:
    _only(fields, "summary")
    return TodoDone(_text(fields, "summary", default=""))


_PARSERS: Mapping[str, Callable[[_Fields], Message]] = {
    "defer": _defer,
    "fork": _fork,
    "premise_invalid": _premise,
    "assumption": _assumption,
    "propose": _propose,
    "todo_done": _todo_done,
}


def _only(fields: _Fields, *names: str) -> None:
    unknown = [name for name in fields if name not in names]
    if unknown:
        raise _WrongError(f"unknown key {_shown(unknown[0])}")


def _text(fields: _Fields, name: str, *, default: str | None = None) -> str:
    value = fields.get(name, default)
    if value is None:
        raise _WrongError(f"{name} is missing")
    if not isinstance(value, str):
        raise _WrongError(f"{name} is a text, not {_shown(value)}")
    if default is None and not value.strip():
        raise _WrongError(f"{name} is empty")
    try:
        value.encode()
    except UnicodeEncodeError as error:
        raise _WrongError(f"{name} holds half a surrogate pair") from error
    return value


def _shown(value: object) -> str:
    text = json.dumps(value, default=str)
    limit = 60
    return text if len(text) <= limit else f"{text[:limit]}..."
