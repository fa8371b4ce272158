"""``tasks/ACTIVE.toml`` as the port :class:`~loopctl.ports.ManifestFile` has it."""

from collections.abc import Collection
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Final

from loopctl.domain import Addition, Manifest, TaskId, TaskStatus
from loopctl.errors import Fault, FaultsError, ManifestError
from loopctl.manifest.extend import EMPTY, extended
from loopctl.manifest.readers import Problem
from loopctl.manifest.replace import Seen, create_file, replace_file, see
from loopctl.manifest.validate import InvalidError, validate
from loopctl.manifest.writeback import WriteRefusedError, find_task, status_of, with_status
from loopctl.tomlsource.read import MAX_BYTES, decode, parse, read_bytes
from loopctl.tomlsource.scan import Places

MISSING: Final = "there is no such file; `loop init` writes an example"
TRIES: Final = 8
"""How often a write starts over because the file was changed meanwhile."""


@dataclass(frozen=True, slots=True)
class _Parsed:
    """A file's bytes and what they hold, so that equal bytes are not read twice.

    Attributes:
        manifest: ``None`` where the document was not validated.
    """

    content: bytes
    document: dict[str, Any]
    manifest: Manifest | None = None


class TomlManifest:
    """The goal and the tasks of one TOML file.

    One thread at a time may use it.

    Args:
        path: Where the file is; a symbolic link is followed, also when it is written.
        shown_as: How messages name it, usually relative to the checkout.
        known_workers: Names that a task's ``worker`` may have; ``None`` means any.
    """

    def __init__(
        self, path: Path, shown_as: str, *, known_workers: Collection[str] | None = None
    ) -> None:
        self._path = path
        self._shown_as = shown_as
        self._known_workers = known_workers
        self._parsed: _Parsed | None = None
        self._refusal = ""

    @property
    def path(self) -> Path:
        """Where it is."""
        return self._path

    @property
    def refusal(self) -> str:
        """Why the last :meth:`write_status` returned False, one line; else empty."""
        return self._refusal

    def load(self) -> Manifest:
        """Return what the file holds now; without parsing where its bytes are as before.

        Raises:
            ManifestError: All its faults, in the order of their lines.
        """
        try:
            content = read_bytes(self._path, self._shown_as, MISSING)
            parsed = self._parse(content)
        except FaultsError as exc:
            raise ManifestError(*exc.faults) from exc
        if parsed.manifest is not None:
            return parsed.manifest
        manifest = self._validated(content, parsed.document)
        self._parsed = replace(parsed, manifest=manifest)
        return manifest

    def write_status(self, task: TaskId, status: TaskStatus) -> bool:
        """Write one status back, byte-exactly and atomically, into the file as it is now.

        A file that already has the status is not touched. An edit that the user made meanwhile
        is kept: the write starts over with the new bytes.

        Returns:
            False when the file cannot take it now, and nothing was written then: it is gone or
            does not parse, the task is gone or is there twice, the disk is full, the file or its
            folder is read-only, or somebody keeps changing it. ``refusal`` says which. A run can
            live with that: it goes on, tries again later, and the statuses are reconciled with
            the integration branch at the next start.
        """
        try:
            self._refusal = f"{self._shown_as}: it is being changed all the time"
            for _ in range(TRIES):
                if self._try_to_write(task, status):
                    self._refusal = ""
                    return True
        except WriteRefusedError as exc:
            self._refusal = f"{self._shown_as}: {exc}"
        except FaultsError as exc:
            self._refusal = str(exc)
        except OSError as exc:
            self._refusal = f"{self._shown_as}: it cannot be written: {exc.strerror or exc}"
        return False

    def preview(self, addition: Addition) -> Manifest:
        """Return the manifest as it would be with an addition; nothing is written.

        Raises:
            ManifestError: All its faults; those of the file itself where it has some.
        """
        return self._grown(self._seen(), addition)[1]

    def extend(self, addition: Addition) -> Manifest:
        """Write an addition, all of it or nothing, and return the manifest that is there now.

        What stood in the file stays byte for byte; a file that is missing is made.

        Raises:
            ManifestError: What keeps it from being written; nothing was.
        """
        try:
            for _ in range(TRIES):
                seen = self._seen()
                content, manifest = self._grown(seen, addition)
                if (
                    create_file(self._path, content)
                    if seen is None
                    else replace_file(seen, content)
                ):
                    return manifest
        except OSError as exc:
            raise self._refused(f"it cannot be written: {exc.strerror or exc}") from exc
        raise self._refused("it is being changed all the time")

    def _seen(self) -> Seen | None:
        """Return the file as it is; ``None`` where there is none."""
        try:
            return see(self._path, MAX_BYTES)
        except FileNotFoundError:
            return None
        except OSError as exc:
            raise self._refused(f"it cannot be read: {exc.strerror or exc}") from exc

    def _grown(self, seen: Seen | None, addition: Addition) -> tuple[bytes, Manifest]:
        content = EMPTY.encode() if seen is None else seen.content
        try:
            text = decode(content, self._shown_as)
            document = parse(text, self._shown_as)
            self._validated(content, document)
            grown = extended(content.decode(), document, addition).encode()
        except WriteRefusedError as exc:
            raise self._refused(str(exc)) from exc
        except FaultsError as exc:
            raise ManifestError(*exc.faults) from exc
        new = parse(decode(grown, self._shown_as), self._shown_as)
        return grown, self._validated(grown, new)

    def _validated(self, content: bytes, document: dict[str, Any]) -> Manifest:
        try:
            return validate(document, self._known_workers)
        except InvalidError as exc:
            raise ManifestError(*self._faults(content, exc.args)) from exc

    def _refused(self, why: str) -> ManifestError:
        return ManifestError(Fault(self._shown_as, 0, why))

    def _try_to_write(self, task: TaskId, status: TaskStatus) -> bool:
        seen: Seen = see(self._path, MAX_BYTES)
        parsed = self._parse(seen.content)
        index = find_task(parsed.document, task)
        if status_of(parsed.document, index) is status:
            return True
        text, document = with_status(seen.content.decode(), parsed.document, index, status)
        content = text.encode()
        if not replace_file(seen, content):
            return False
        manifest = parsed.manifest and _with_status(parsed.manifest, index, status)
        self._parsed = _Parsed(content, document, manifest)
        return True

    def _parse(self, content: bytes) -> _Parsed:
        if self._parsed is None or self._parsed.content != content:
            self._parsed = None  # two documents at once may be a lot of memory
            document = parse(decode(content, self._shown_as), self._shown_as)
            self._parsed = _Parsed(content, document)
        return self._parsed

    def _faults(self, content: bytes, problems: tuple[Problem, ...]) -> list[Fault]:
        places = Places(decode(content, self._shown_as))
        faults: list[Fault] = []
        for problem in sorted(problems, key=lambda problem: places.start(problem.path)):
            message = problem.message
            if problem.see is not None:
                message += f"; first in line {places.line(problem.see)}"
            faults.append(Fault(self._shown_as, places.line(problem.path), message))
        return faults


def _with_status(manifest: Manifest, index: int, status: TaskStatus) -> Manifest:
    tasks = list(manifest.tasks)
    tasks[index] = replace(tasks[index], status=status)
    return replace(manifest, tasks=tuple(tasks))
