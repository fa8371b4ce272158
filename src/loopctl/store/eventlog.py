"""``events.jsonl`` of a run: numbered without gaps, written before anything depends on it."""

import json
import os
import threading
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Final

from loopctl import failpoints
from loopctl.clock import Clock, stamp
from loopctl.disk import machine_errors
from loopctl.errors import StoreError
from loopctl.events import AnyEvent, dump, parse
from loopctl.redaction import Redactor

FILE_NAME: Final = "events.jsonl"


class JsonLinesEventLog:
    """The events of one run in one file.

    Args:
        folder: Of the run; made with mode 0700 where it is missing.
        run_id: Put into every event.
        listeners: Called with each event, in order, after it is written; as it is written.
        redact: Takes keys out of every event, so that no reader of events has to.

    Raises:
        MachineError: The file cannot be made.
        StoreError: Its last line is no event.
    """

    def __init__(
        self,
        folder: Path,
        run_id: str,
        clock: Clock,
        listeners: Sequence[Callable[[AnyEvent], None]] = (),
        redact: Redactor | None = None,
    ) -> None:
        self._path = folder / FILE_NAME
        self._what = f"the events in {self._path} cannot be written"
        self._run_id = run_id
        self._clock = clock
        self._listeners = tuple(listeners)
        self._redact = redact
        self._lock = threading.RLock()
        with machine_errors(self._what):
            make_private(folder)
            self._seq = _mend(self._path)
            self._file = os.open(self._path, os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o600)

    def append(self, event: AnyEvent) -> AnyEvent:
        """Return the event as written, numbered and stamped; listeners are called after that.

        Raises:
            MachineError: It cannot be written (a full disk); the file is as before.
        """
        with self._lock:
            written = event.model_copy(
                update={
                    "seq": self._seq + 1,
                    "ts": stamp(self._clock.now()),
                    "run": self._run_id,
                }
            )
            if self._redact is not None:
                written = _redacted(written, self._redact)
            failpoints.reach("events.before_append")
            with machine_errors(self._what):
                _write_all(self._file, to_line(written))
            failpoints.reach("events.after_append")
            self._seq += 1
            for listener in self._listeners:
                listener(written)
        return written

    def read(self) -> Iterator[AnyEvent]:
        """Yield all events of the run so far, also those of earlier invocations."""
        return read_events(self._path.parent)

    def close(self) -> None:
        """Close the file."""
        os.close(self._file)


def _redacted(event: AnyEvent, redact: Redactor) -> AnyEvent:
    document = dump(event)
    clean = redact.tree(document)
    return event if clean == document else parse(json.dumps(clean))


def make_private(folder: Path) -> None:
    """Make the folder of a run, and the one of all runs, with mode 0700 where it is missing."""
    for path in (folder.parent, folder):
        path.mkdir(mode=0o700, exist_ok=True)


def to_line(event: AnyEvent) -> bytes:
    """Return the line of ``events.jsonl`` that an event is, its end included."""
    line = json.dumps(dump(event), ensure_ascii=False, separators=(",", ":"))
    return line.encode("utf-8", "replace") + b"\n"


def read_lines(folder: Path) -> list[bytes]:
    """Return the whole lines of ``events.jsonl``; line N is the event whose ``seq`` is N."""
    try:
        content = (folder / FILE_NAME).read_bytes()
    except FileNotFoundError:
        return []
    return [line for line in content.splitlines(keepends=True) if line.endswith(b"\n")]


def read_events(folder: Path) -> Iterator[AnyEvent]:
    """Yield the events of the run in ``folder``; a torn last line never happened.

    Raises:
        StoreError: A line is no event; says which.
    """
    path = folder / FILE_NAME
    try:
        with path.open("rb") as file:
            for number, line in enumerate(file, 1):
                if line.endswith(b"\n"):
                    yield _parsed(line, path, number)
    except FileNotFoundError:
        return


def has_events(folder: Path) -> bool:
    """Return whether the run in ``folder`` was begun."""
    return (folder / FILE_NAME).exists()


def check_events(folder: Path) -> None:
    """Look at all events of a run.

    Raises:
        StoreError: A line is no event; says which.
    """
    for _ in read_events(folder):
        pass


def _parsed(line: bytes, path: Path, number: int) -> AnyEvent:
    try:
        return parse(line)
    except ValueError:
        raise StoreError(
            f"{path}:{number} is no event: somebody has changed the file; take that line out, or "
            f"move the folder of the run away ({path.parent}): what landed, and the trees that "
            "are kept, are in git"
        ) from None


class Tail:
    """Reads the events of a run while they are written, each once."""

    def __init__(self, folder: Path) -> None:
        self._path = folder / FILE_NAME
        self._offset = 0
        self._count = 0

    def read(self) -> list[AnyEvent]:
        """Return the events written since the last time; a line that is not whole waits."""
        try:
            with self._path.open("rb") as file:
                file.seek(self._offset)
                content = file.read()
        except FileNotFoundError:
            return []
        whole = content[: content.rfind(b"\n") + 1]
        self._offset += len(whole)
        lines = whole.split(b"\n")[:-1]
        first = self._count + 1
        self._count += len(lines)
        return [_parsed(line, self._path, number) for number, line in enumerate(lines, first)]


def _mend(path: Path) -> int:
    """Cut a line off that a crash tore, since nothing depends on it; return the last number.

    Raises:
        StoreError: The last line is no event, so that the next one cannot be numbered.
    """
    try:
        content = path.read_bytes()
    except FileNotFoundError:
        return 0
    whole = content[: content.rfind(b"\n") + 1]
    if len(whole) < len(content):
        os.truncate(path, len(whole))
    lines = whole.split(b"\n")[:-1]
    return _parsed(lines[-1], path, len(lines)).seq if lines else 0


def _write_all(file: int, data: bytes) -> None:
    before = os.fstat(file).st_size
    view = memoryview(data)
    try:
        while view:
            view = view[os.write(file, view) :]
    except OSError:
        # Half a line would tear the next one.
        os.ftruncate(file, before)
        raise
