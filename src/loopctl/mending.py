"""``--test-debug-fix``: which command tells red from green, how it stands, and the task of it."""

import shutil
from collections.abc import Callable
from dataclasses import dataclass
from typing import Final

from loopctl.domain import Manifest, Mode
from loopctl.drawing import Bench
from loopctl.errors import UsageError
from loopctl.place import Own, Place
from loopctl.sources import fixing
from loopctl.sources.detect import Found, detect
from loopctl.verdict import CheckResult, Verdict

_NO_TESTS: Final = 5
"""What pytest and unittest end with where they found no test."""

_HINT: Final = "name the command that is to be green: loop --test-debug-fix --verify 'CMD'"


@dataclass(frozen=True, slots=True)
class Mending:
    """The source of ``--test-debug-fix``.

    Attributes:
        verify_cmd: As the user gave it; ``None`` for the one of the project.
        command: What a worker of commands runs; ``None`` for every other worker.
        mode: Of the task; ``None``: a relay, which edits, runs and mends without planning, but for
            a worker of commands, which is told its goal in no relay.
        tell: Told the command and how it ends before any work.
    """

    verify_cmd: str | None
    command: str | None
    mode: Mode | None
    tell: Callable[[Found, CheckResult], None]

    @property
    def own(self) -> Own:
        """It is ``test-debug-fix``."""
        return Own.FIX

    def draw(self, bench: Bench) -> Manifest | None:
        """Return the one task; ``None`` where the command is green.

        Raises:
            UsageError: There is no command, or it cannot tell red from green here.
            ManifestError: No command was given, and the manifest, which may have one, is broken.
        """
        found = self._command(bench)
        result = bench.gate.run_check(found.command, bench.base)
        if result.verdict is Verdict.UNKNOWN:
            raise UsageError(
                f"`{found.command}` ({found.because}) cannot tell red from green here: "
                f"{result.reason}{_end(result)}; mend that, or {_HINT}"
            )
        is_none = result.exit == _NO_TESTS if result.counts is None else not result.counts.collected
        if is_none:
            raise UsageError(f"`{found.command}` ({found.because}) finds no test; {_HINT}")
        self.tell(found, result)
        if result.verdict is Verdict.PASS:
            return None
        return fixing.manifest(
            f"fix-{bench.suffix}", result, command=self.command, mode=self._mode()
        )

    def has_drawn(self, bench: Bench, manifest: Manifest) -> bool:
        """Return whether the task of an earlier run is the one of now: command, worker and mode.

        Raises:
            UsageError: There is no command.
            ManifestError: No command was given, and the manifest, which may have one, is broken.
        """
        asked = (self._command(bench).command, self.command, self._mode())
        return [(task.verify_cmd, task.command, task.mode) for task in manifest.tasks] == [asked]

    def _mode(self) -> Mode:
        return self.mode or (Mode.RELAY if self.command is None else Mode.AUTONOMOUS)

    def _command(self, bench: Bench) -> Found:
        if self.verify_cmd is not None:
            return Found(self.verify_cmd, "--verify")
        found = command_of(bench)
        if found is None:
            raise UsageError(f"nothing in the repository tells how its tests are run; {_HINT}")
        return found


def command_of(bench: Bench) -> Found | None:
    """Return the command that tells red from green: the manifest's, the settings', the tree's."""
    return _of_manifest(bench.place) or _of_settings(bench.place) or _of_tree(bench)


def _of_manifest(place: Place) -> Found | None:
    """Return the one command of the manifest that decides; ``None`` where it has none or many."""
    if not place.file.path.exists():
        return None
    manifest = place.file.load()
    checks = {one.check for one in manifest.goal.done_when if one.check}
    verifies = {task.verify_cmd for task in manifest.tasks if task.verify_cmd}
    for commands, because in ((checks, "done_when of the goal"), (verifies, "every verify_cmd")):
        if len(commands) == 1:
            return Found(commands.pop(), f"{because} in {place.file.path.name}")
    return None


def _of_settings(place: Place) -> Found | None:
    command = place.settings.gate.verify_cmd
    return Found(command, "gate.verify_cmd of the settings") if command.strip() else None


def _of_tree(bench: Bench) -> Found | None:
    tree = bench.repository.tree_of(bench.base)
    paths = [file.path for file in bench.repository.files(tree)]
    search = bench.place.env.get("PATH", "")
    python = "python" if shutil.which("python", path=search) else "python3"
    return detect(paths, lambda path: bench.repository.read_blob(tree, path), python=python)


def _end(result: CheckResult) -> str:
    lines = result.tail.strip().splitlines()
    return f": {lines[-1][:200]}" if lines else ""
