"""``audit.jsonl`` of a run: a hash chain over what a run has to account for, made from its events.

A line is a JSON object in canonical form (keys sorted, no spaces, ASCII):

* ``seq``, from 1 without gaps; ``ts``, ``run`` and ``task`` of the event; ``what``, its type;
* ``event``, the number of the event, and ``digest``, the SHA-256 of its line in ``events.jsonl``;
* ``fields``: what is accounted for; for a step also the hash of the settings in force;
* ``prev``, the hash of the line before; ``hash``, the SHA-256 of this line without ``hash``.

All of it follows from ``events.jsonl``, so that the entries which a crash has kept from being
written are made again when the run goes on. What the file holds is never written over: a chain
that somebody has broken goes on behind its last entry, and stays broken.
"""

import hashlib
import json
import os
import threading
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final, assert_never

from loopctl import failpoints
from loopctl.disk import machine_errors
from loopctl.events import (
    AnyEvent,
    CallFinished,
    CallReplayed,
    CandidateEnded,
    ContextCompacted,
    DecisionAnswered,
    DecisionRaised,
    ForkResolved,
    GateFinished,
    GoalJudged,
    MessageRejected,
    MoneySpent,
    Noticed,
    PlanCreated,
    PlanRevised,
    RunEnded,
    RunResumed,
    RunStarted,
    SandboxOpened,
    StatusChanged,
    StepFinished,
    StepStarted,
    TaskClaimed,
    TaskLanded,
    TaskStopped,
    TodoClosed,
    TodoReopened,
    parse,
)
from loopctl.forkevents import ForkClassified
from loopctl.store.eventlog import make_private, read_lines, to_line
from loopctl.suggestions import AssumptionRecorded, ProposalJudged, TaskProposed, TodoAdded

FILE_NAME: Final = "audit.jsonl"
GENESIS: Final = "0" * 64
"""``prev`` of the first entry."""


def audited(event: AnyEvent) -> tuple[str, ...] | None:
    """Return the names of the event's fields that the audit keeps; ``None``: it keeps nothing."""
    match event:
        case RunStarted():
            return ("goal", "base", "branch", "scope", "tasks", "settings_hash")
        case RunResumed():
            return ("reason",)
        case RunEnded():
            return ("status", "exit_code", "head", "landed_here")
        case StepStarted() | StepFinished() | CallFinished() | CallReplayed():
            return _of_step(event)
        case PlanCreated() | PlanRevised() | TodoClosed() | TodoReopened() | TodoAdded():
            return ("candidate", "todos", "replans", "todo", "summary")
        case DecisionRaised() | DecisionAnswered():
            return ("id", "kind", "question", "options", "answer")
        case ForkClassified():
            return ("candidate", "question", "options", "said", "bucket", "reason", "chosen")
        case StatusChanged() | TaskLanded() | TaskStopped() | MoneySpent():
            return _of_task(event)
        case (
            Noticed()
            | TaskClaimed()
            | SandboxOpened()
            | MessageRejected()
            | AssumptionRecorded()
            | TaskProposed()
            | ProposalJudged()
            | GateFinished()
            | CandidateEnded()
            | ContextCompacted()
            | ForkResolved()
            | GoalJudged()
        ):
            return None
        case _:
            assert_never(event)


def _of_step(
    event: StepStarted | StepFinished | CallFinished | CallReplayed,
) -> tuple[str, ...]:
    match event:
        case StepStarted():
            return ("candidate", "iteration", "step_goal")
        case StepFinished():
            return ("candidate", "iteration", "tree", "exit", "usage")
        case CallFinished() | CallReplayed():
            return ("candidate", "iteration", "ordinal", "tool", "key", "is_error", "source")
        case _:
            assert_never(event)


def _of_task(event: StatusChanged | TaskLanded | TaskStopped | MoneySpent) -> tuple[str, ...]:
    match event:
        case StatusChanged():
            return ("old", "new", "signal")
        case TaskLanded():
            return ("commit", "tree", "branch", "key")
        case TaskStopped():
            return ("axis", "reason", "steps", "replans", "ref", "usage")
        case MoneySpent():
            return ("usage",)
        case _:
            assert_never(event)


@dataclass(slots=True)
class Chain:
    """The end of a chain, which grows by one event after the other.

    Attributes:
        seq: Of the last entry; 0 where there is none.
        last: Its hash.
        settings_hash: Of the settings in force, as the start of the run gave them.
    """

    seq: int = 0
    last: str = GENESIS
    settings_hash: str = ""

    def grow(self, line: bytes) -> bytes:
        """Return the entry of the event that is ``line``, a line itself; empty where it has none.

        Raises:
            ValueError: The line is no event that this version knows.
        """
        event = parse(line)
        if isinstance(event, RunStarted):
            self.settings_hash = event.settings_hash
        names = audited(event)
        if names is None:
            return b""
        # From the line and not from the event: what was read once stays as it was written.
        raw: Mapping[str, Any] = json.loads(line)
        fields = {name: raw[name] for name in names if name in raw}
        if isinstance(event, StepStarted | StepFinished):
            fields["settings_hash"] = self.settings_hash
        entry = {
            "seq": self.seq + 1,
            "ts": raw["ts"],
            "run": raw["run"],
            "task": raw["task"],
            "what": raw["type"],
            "event": raw["seq"],
            "digest": hashlib.sha256(line).hexdigest(),
            "fields": fields,
            "prev": self.last,
        }
        self.seq += 1
        self.last = hash_of(entry)
        return canonical({**entry, "hash": self.last}) + b"\n"


def canonical(entry: Mapping[str, Any]) -> bytes:
    """Return the one form of a JSON object in which it is written and hashed."""
    return json.dumps(entry, sort_keys=True, separators=(",", ":")).encode()


def hash_of(entry: Mapping[str, Any]) -> str:
    """Return the hash of an entry, whether it holds one already or not."""
    bare = {name: value for name, value in entry.items() if name != "hash"}
    return hashlib.sha256(canonical(bare)).hexdigest()


def read_entry(line: bytes) -> dict[str, Any] | None:
    """Return what a line of ``audit.jsonl`` holds; ``None`` where it is no entry."""
    try:
        entry = json.loads(line)
    except ValueError:
        return None
    wanted = {"seq": int, "event": int, "prev": str, "hash": str, "digest": str}
    if not isinstance(entry, dict):
        return None
    is_whole = all(isinstance(entry.get(name), kind) for name, kind in wanted.items())
    return entry if is_whole else None


class AuditLog:
    """Writes the chain of one run; called with each of its events, before any other listener.

    Args:
        folder: Of the run; made where it is missing. What an earlier invocation has left undone
            is done at once.

    Raises:
        MachineError: The file cannot be made, read or written.

    Attributes:
        notice: What a person should know about the file as it was found; empty for nothing.
    """

    def __init__(self, folder: Path) -> None:
        self._path = folder / FILE_NAME
        self._what = f"the audit chain {self._path} cannot be written"
        self._lock = threading.Lock()
        self._pending = b""
        self.notice = ""
        with machine_errors(self._what):
            make_private(folder)
            self._file = os.open(self._path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
            content = self._path.read_bytes()
        self._size = content.rfind(b"\n") + 1
        self._chain = self._caught_up(content[: self._size].splitlines(), read_lines(folder))
        self._write()

    def __call__(self, event: AnyEvent) -> None:
        """Write the entry of one event, if it has one.

        Raises:
            MachineError: It cannot be written; the next call, or the next invocation, does it.
        """
        with self._lock:
            self._pending += self._chain.grow(to_line(event))
            self._write()

    def close(self) -> None:
        """Close the file."""
        os.close(self._file)

    def _caught_up(self, entries: list[bytes], events: list[bytes]) -> Chain:
        """Return the chain as it stands after all events, the entries that lack made pending."""
        found = [entry for line in reversed(entries) if (entry := read_entry(line))][:1]
        chain, done = Chain(), 0
        if found:
            chain, done = Chain(found[0]["seq"], found[0]["hash"]), found[0]["event"]
        first = parse(events[0]) if events else None
        if isinstance(first, RunStarted):
            chain.settings_hash = first.settings_hash
        lacking = [line for event in events[done:] if (line := chain.grow(event))]
        self._pending = b"".join(lacking)
        if entries and read_entry(entries[-1]) is None:
            self.notice = f"{FILE_NAME} does not end with an entry: it was changed"
        elif done > len(events):
            self.notice = f"{FILE_NAME} goes further than the events: one of them was changed"
        elif len(lacking) > 1:
            # A crash leaves at most one event without its entry.
            self.notice = f"{FILE_NAME} lacked {len(lacking)} entries; made again from the events"
        return chain

    def _write(self) -> None:
        """Write what is pending behind the last whole line, over what a crash or a full disk tore."""
        if self._pending:
            failpoints.reach("audit.before_append")
        with machine_errors(self._what):
            while self._pending:
                count = os.pwrite(self._file, self._pending, self._size)
                self._size += count
                self._pending = self._pending[count:]
                failpoints.reach("audit.after_append")
            if os.fstat(self._file).st_size != self._size:
                os.ftruncate(self._file, self._size)
