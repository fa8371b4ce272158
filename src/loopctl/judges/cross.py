"""Runs the tests of one passing candidate on the files of another: whether both do the same.

A candidate's own tests are the test files that it added or changed. Where one of them fails on the
files of another candidate that the gate has passed as well, the two do different things. It has to
fail twice, and by what it demands: a test that asks for a name which only its own candidate has
tells of the inside of that candidate, and of nothing that anybody else must do.
"""

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import PurePosixPath
from typing import Final

from loopctl.crossing import Difference, Entrant
from loopctl.domain import Task
from loopctl.errors import GitError, SandboxError
from loopctl.fencing import clean, one_line
from loopctl.judges.case import Checkouts
from loopctl.judges.outcome import End
from loopctl.judges.paths import FILE_MODES
from loopctl.judges.runs import is_of_tests
from loopctl.judges.verify import Run, run_verify
from loopctl.ports import Repository
from loopctl.settings import GateSettings
from loopctl.trees import Change
from loopctl.verdict import Verdict

_MOST_FOUND: Final = 3
_FOUND_BYTES: Final = 300

_INSIDE: Final = re.compile(
    # Python
    r"\b(?:ImportError|ModuleNotFoundError|AttributeError|NameError)\b"
    r"|\bTypeError: .*(?:argument|positional|not callable)"
    # JavaScript, TypeScript
    r"|Cannot find (?:module|package|name)|is not a (?:function|constructor)|is not defined"
    r"|does not provide an export|has no exported member"
    # Rust, Go, C, shells
    r"|unresolved import|cannot find \w+ `|\bundefined: |undefined reference|No such file or dir"
    r"|fatal error: .*file|command not found|: not found\b",
)
"""What is said where a test asks for a name that is not there, or calls it in another way."""


@dataclass(frozen=True, slots=True)
class CrossJudge:
    """Implements :class:`loopctl.crossing.Comparison`.

    Attributes:
        setup_cmd: Run in each checkout before anything else; empty for none.
    """

    repository: Repository
    settings: GateSettings
    setup_cmd: str = ""

    def differences(self, task: Task, one: Entrant, other: Entrant) -> tuple[Difference, ...]:
        """Return where the tests of one fail on the files of the other, either way."""
        command = task.verify_cmd or ""
        if task.is_prose or not command.strip():
            return ()
        found = (self._difference(command, *pair) for pair in ((one, other), (other, one)))
        return tuple(difference for difference in found if difference is not None)

    def meets(self, command: str, entrant: Entrant) -> bool | None:
        """Return whether a command exits 0 on a candidate's files; ``None`` where nobody can tell.

        A check that the tests of a project cannot take for granted is none that decides.
        """
        run = self._run(command, entrant, entrant.tree)
        if run is None or run.result.verdict is Verdict.UNKNOWN:
            return None
        return run.end is End.GREEN

    def _difference(self, command: str, tests_of: Entrant, files_of: Entrant) -> Difference | None:
        try:
            tests = self._own_tests(tests_of, files_of)
            if not tests:
                return None
            tree = self.repository.overlaid(files_of.tree, tests)
        except (GitError, SandboxError):
            return None
        paths = [change.path for change in tests]
        found: Mapping[str, str] | None = None
        for _ in range(2):
            run = self._run(command, files_of, tree)
            now = _demands(run, paths) if run is not None and run.end is End.RED else {}
            found = now if found is None else {test: found[test] for test in found if test in now}
            if not found:
                return None
        lines = (f"{test}: {cause}" if test else cause for test, cause in (found or {}).items())
        shown = tuple(one_line(clean(line), _FOUND_BYTES) for line in lines)
        return Difference(tests_of.name, files_of.name, shown[:_MOST_FOUND])

    def _own_tests(self, tests_of: Entrant, files_of: Entrant) -> tuple[Change, ...]:
        """Return the tests that one has added or changed and that the other has not as well."""
        base = self.repository.tree_of(tests_of.base)
        differing = {
            change.path for change in self.repository.changes(files_of.tree, tests_of.tree)
        }
        return tuple(
            change
            for change in self.repository.changes(base, tests_of.tree)
            if change.new_mode in FILE_MODES
            and is_of_tests(change.path)
            and change.path in differing
        )

    def _run(self, command: str, entrant: Entrant, tree: str) -> Run | None:
        timeout_s = self.settings.timeout_s
        try:
            with Checkouts(
                self.repository, setup_cmd=self.setup_cmd, timeout_s=timeout_s
            ) as checkouts:
                sandbox = checkouts.fresh(entrant.base, tree)
                return run_verify(sandbox, command, tree, timeout_s)
        except (GitError, SandboxError, OSError):
            # Candidates that cannot be compared are as good as each other.
            return None


def _demands(run: Run, paths: Sequence[str]) -> dict[str, str]:
    """Return the tests of those files that fail by what they demand, each with its error.

    Where the tests left no report, the end of the output is what there is, under an empty name.
    """
    account = run.account
    if account.counts is None:
        said = run.result.tail.strip()
        last = said.splitlines()[-1] if said else f"exit {run.result.exit}"
        return {} if _INSIDE.search(said) else {"": last}
    return {
        test: cause
        for test in account.failed
        if any(_is_of(test, path) for path in paths)
        and not _INSIDE.search(cause := account.causes.get(test, ""))
        and cause
    }


def _is_of(test: str, path: str) -> bool:
    """Say whether a test is of a file; pytest names the file, unittest the module."""
    file, is_pytest, _ = test.partition("::")
    if is_pytest or file.endswith(".py"):
        return path == file or path.endswith(f"/{file}")
    return PurePosixPath(path).stem in test.split(".")
