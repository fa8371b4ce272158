"""Whether a task's verify command can turn red: faults are planted where its work is.

A gate that stays green whatever is done to the work accepts anything. Each fault is planted in a
fresh checkout, so that nothing an earlier run has cached (compiled files, say) hides it.
"""

import os
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from enum import StrEnum
from itertools import islice, zip_longest
from pathlib import Path
from typing import Final

from loopctl.domain import Sha
from loopctl.judges.case import Checkouts
from loopctl.judges.mutation import Mutant, mutants
from loopctl.judges.outcome import End
from loopctl.judges.paths import FILE_MODES
from loopctl.judges.protect import Surface
from loopctl.judges.runs import runs
from loopctl.judges.verify import Run, run_verify
from loopctl.ports import Repository
from loopctl.settings import GateSettings
from loopctl.trees import Change, ChangeType

MOST_FAULTS: Final = 5
"""Faults planted for a task whose verify stays green; each costs a run of it."""

_MOST_BYTES: Final = 1 << 18
_MOST_FILES: Final = 200
_LATER_NS: Final = 10_000_000_000
_A_FILE: Final = ("100644", "100644")
_SOME_BLOBS: Final = ("1" * 40, "2" * 40)


class Finding(StrEnum):
    """What was found out about a verify command; ``none`` is that there is no command."""

    SENSITIVE = "sensitive"
    INSENSITIVE = "insensitive"
    RED = "red"
    NONE = "none"
    UNKNOWN = "unknown"


@dataclass(frozen=True, slots=True)
class Sensitivity:
    """The evidence about one verify command.

    Attributes:
        planted: The faults that were planted, in their order; the last one of a sensitive
            command is what turned it red.
        reason: In words, of one that is red already or that could not be judged.
    """

    finding: Finding
    planted: tuple[Mutant, ...] = ()
    reason: str = ""


@dataclass(frozen=True, slots=True)
class Probe:
    """Plants faults at one commit and watches what verify commands make of them.

    Attributes:
        head: The commit; its tree is what is changed.
        setup_cmd: Run in each checkout before anything else; empty for none.
    """

    repository: Repository
    settings: GateSettings
    head: Sha
    setup_cmd: str = ""

    def examine(self, command: str, landed: Sequence[Sha] = ()) -> Sensitivity:
        """Return whether a fault turns ``command`` red.

        Args:
            command: A task's verify command.
            landed: The commits that brought the task's work, newest first; where there are none,
                faults are planted in any files that are not protected.

        Raises:
            SandboxError: A checkout could not be made.
            CancelledError: The run was asked to stop.
        """
        run = self._run(command, None)
        if run.end is End.RED:
            return Sensitivity(Finding.RED, reason=f"exit {run.result.exit} as it stands")
        if run.end is not End.GREEN:
            return Sensitivity(Finding.UNKNOWN, reason=run.why)
        planted: list[Mutant] = []
        for mutant in islice(self._mutants(command, landed), MOST_FAULTS):
            planted.append(mutant)
            run = self._run(command, mutant)
            if run.end is End.RED:
                return Sensitivity(Finding.SENSITIVE, tuple(planted))
            if run.end is not End.GREEN:
                return Sensitivity(Finding.UNKNOWN, tuple(planted), run.why)
        if not planted:
            return Sensitivity(Finding.UNKNOWN, reason="there is no file to plant a fault in")
        return Sensitivity(Finding.INSENSITIVE, tuple(planted))

    def _run(self, command: str, mutant: Mutant | None) -> Run:
        tree = self.repository.tree_of(self.head)
        timeout_s = self.settings.timeout_s
        with Checkouts(self.repository, setup_cmd=self.setup_cmd, timeout_s=timeout_s) as checkouts:
            sandbox = checkouts.fresh(self.head, tree)
            if mutant is not None:
                _plant(sandbox.workdir / mutant.path, mutant.content)
            return run_verify(sandbox, command, tree, timeout_s)

    def _mutants(self, command: str, landed: Sequence[Sha]) -> Iterator[Mutant]:
        """Yield faults, a first one in each file before the second of any."""
        files = list(self._of_landings(command, landed)) or list(self._anywhere(command))
        for row in zip_longest(*files):
            yield from (mutant for mutant in row if mutant is not None)

    def _of_landings(self, command: str, landed: Sequence[Sha]) -> Iterator[Iterator[Mutant]]:
        """Yield, for each file that the task has changed, the faults in the lines it brought."""
        tree = self.repository.tree_of(self.head)
        seen: set[str] = set()
        for commit in landed:
            before, after = self.repository.tree_of(f"{commit}^"), self.repository.tree_of(commit)
            for change in self.repository.changes(before, after):
                is_file = change.new_mode in FILE_MODES and change.path not in seen
                seen.add(change.path)
                if not is_file or self._judges(command, change.path):
                    continue
                old = self.repository.read_blob(before, change.path, _MOST_BYTES) or b""
                now = self.repository.read_blob(tree, change.path, _MOST_BYTES)
                if now is not None:
                    yield mutants(change.path, now, _brought(old, now))

    def _anywhere(self, command: str) -> Iterator[Iterator[Mutant]]:
        tree = self.repository.tree_of(self.head)
        paths = [
            file.path
            for file in self.repository.files(tree)
            if not self._judges(command, file.path)
        ]
        # What the command names comes first: it is the likeliest to be looked at.
        paths.sort(key=lambda path: path not in command)
        for path in paths[:_MOST_FILES]:
            content = self.repository.read_blob(tree, path, _MOST_BYTES)
            if content is not None and len(content) < _MOST_BYTES:
                yield mutants(path, content)

    def _judges(self, command: str, path: str) -> bool:
        """Return whether a path belongs to what judges: a fault there would prove nothing."""
        change = Change(path, ChangeType.MODIFIED, *_A_FILE, *_SOME_BLOBS)
        is_protected = bool(Surface(self.settings.protect).protects(change))
        return is_protected or runs(command).is_run(path, {path}.__contains__)


def _plant(file: Path, content: bytes) -> None:
    """Write a file so that what was compiled of it before is out of date for certain."""
    before = file.stat()
    file.write_bytes(content)
    os.utime(file, ns=(before.st_atime_ns, before.st_mtime_ns + _LATER_NS))


def _brought(old: bytes, now: bytes) -> frozenset[int]:
    """Return the numbers of the lines that are not in ``old``."""
    known = set(old.splitlines())
    return frozenset(number for number, line in enumerate(now.splitlines(), 1) if line not in known)
