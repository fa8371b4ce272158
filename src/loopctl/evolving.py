"""``--evolve``: what recent history left undone, as tasks whose commands are red at the base."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Final

from loopctl.domain import Goal, Manifest, Task
from loopctl.drawing import Bench
from loopctl.mending import command_of
from loopctl.place import Own
from loopctl.sources.evolving import LeftOut, check_of, commits_of, goal_of, keeps_green, task_of
from loopctl.sources.mining import (
    Changed,
    Commit,
    Finding,
    Line,
    changed_lines,
    of_lines,
    of_messages,
    trace_of,
    with_line,
)
from loopctl.verdict import Verdict

COMMITS: Final = 50
"""How far history is looked at, where nothing else is said."""

MOST_TASKS: Final = 20

_UNDECIDED: Final = "no line of text stands for it that a command could look for"


@dataclass(frozen=True, slots=True)
class Evolving:
    """The source of ``--evolve``.

    Attributes:
        commits: How many of the newest commits are looked at.
        verify_cmd: What is to stay green; ``None`` for the command of the project, if it has one.
        command: What a worker of commands runs; ``None`` for every other worker.
        is_dry: Tasks are told and not driven.
        tell: Told the tasks, and what became none.
    """

    commits: int
    verify_cmd: str | None
    command: str | None
    is_dry: bool
    tell: Callable[[Sequence[Task], Sequence[LeftOut]], None]

    @property
    def own(self) -> Own:
        """It is ``evolve``."""
        return Own.EVOLVE

    def draw(self, bench: Bench) -> Manifest | None:
        """Return the tasks; ``None`` where there are none, or they are only told."""
        tests = self._tests(bench)
        tasks: list[Task] = []
        left_out: list[LeftOut] = []
        for finding in findings(bench, self.commits):
            check = check_of(finding, tests)
            if why := _why_not(bench, check, len(tasks)):
                left_out.append(LeftOut(finding, why))
                continue
            name = f"evolve-{bench.suffix}-{len(tasks) + 1}"
            tasks.append(task_of(finding, name, check, self.command))
        self.tell(tasks, left_out)
        if self.is_dry or not tasks:
            return None
        return Manifest(Goal(goal_of(self.commits)), tuple(tasks))

    def has_drawn(self, bench: Bench, manifest: Manifest) -> bool:
        """Return whether the tasks of an earlier run are those of now: history, tests, worker.

        Raises:
            ManifestError: No command was given, and the manifest, which may have one, is broken.
        """
        if self.is_dry or commits_of(manifest.goal.text) != self.commits:
            return False
        found = command_of(bench) if self.verify_cmd is None else None
        # Tests that were red at the base are no part of the commands.
        tests = (self.verify_cmd,) if self.verify_cmd else (found.command if found else "", "")
        return all(
            task.command == self.command
            and any(keeps_green(task.verify_cmd or "", one) for one in tests)
            for task in manifest.tasks
        )

    def _tests(self, bench: Bench) -> str:
        """Return what is to stay green; empty where nothing is known to be green now."""
        if self.verify_cmd is not None:
            return self.verify_cmd
        found = command_of(bench)
        if found is None:
            return ""
        is_green = bench.gate.run_check(found.command, bench.base).verdict is Verdict.PASS
        return found.command if is_green else ""


def findings(bench: Bench, count: int) -> tuple[Finding, ...]:
    """Return what the newest commits left undone at the base."""
    repository = bench.repository
    commits = [Commit(*one) for one in repository.messages(bench.base, count)]
    reverts = of_messages(commits)
    undoing = {one.commit for one in reverts}
    changed: dict[str, Changed] = {}
    added: list[Line] = []
    for commit in commits:
        patch = changed_lines(commit.id, repository.patch(commit.id))
        added += [line for line in patch.added if trace_of(line.text) is not None]
        if commit.id in undoing:
            changed[commit.id] = patch
    told = [line for patch in changed.values() for line in (*patch.removed, *patch.added)]
    paths = {line.path for line in (*added, *told)}
    tree = repository.tree_of(bench.base)
    head = {path: _lines(repository.read_blob(tree, path)) for path in sorted(paths)}
    return (
        *of_lines(added, head),
        *(with_line(revert, changed[revert.commit], head) for revert in reverts),
    )


def _lines(blob: bytes | None) -> tuple[str, ...]:
    return tuple(line.strip() for line in (blob or b"").decode(errors="replace").split("\n"))


def _why_not(bench: Bench, check: str, taken: int) -> str:
    if not check:
        return _UNDECIDED
    if taken >= MOST_TASKS:
        return f"more than {MOST_TASKS} tasks at once"
    try:
        check.encode()
    except UnicodeEncodeError:
        return "the line is no UTF-8 text"
    result = bench.gate.run_check(check, bench.base)
    if result.verdict is Verdict.FAIL:
        return ""
    return f"its check is not red now: {result.reason or 'it passes'}"
