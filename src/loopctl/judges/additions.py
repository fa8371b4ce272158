"""New files among the tests: what passes must pass without them as well.

Tests run in one process, in the order of their names, and look for modules in their own folder
first. So a new file beside them can take the place of a module of the project, or change it under
the tests that the base has. What verify itself names is what the task is judged by, and stays.
"""

from collections.abc import Callable
from dataclasses import dataclass, replace

from loopctl.judges.case import Case
from loopctl.judges.evidence import shown
from loopctl.judges.globs import matches_any
from loopctl.judges.outcome import End
from loopctl.judges.paths import FILE_MODES, GONE
from loopctl.judges.runs import is_of_tests, runs
from loopctl.ports import Repository
from loopctl.trees import Change
from loopctl.verdict import CheckResult


@dataclass(frozen=True, slots=True)
class Ending:
    """How verify ended without the new files.

    Attributes:
        failed: The tests that failed, as far as they are told.
        why: What kept the command from its work, in words, where something did.
        is_empty: Its tests were counted, and there were none.
    """

    end: End
    exit: int | None
    failed: tuple[str, ...] = ()
    why: str = ""
    is_empty: bool = False


def added_tests(
    repository: Repository, case: Case, command: str, protect: tuple[str, ...]
) -> tuple[Change, ...]:
    """Return the new files among the tests that the task has no leave for and verify does not name.

    There are none where the base has no tests that they could change.

    Raises:
        GitError: A tree could not be read.
    """
    named = runs(command).files
    may_edit = case.candidate.task.may_edit
    added = tuple(
        change
        for change in repository.changes(case.head_tree, case.tree)
        if change.old_mode == GONE
        and change.new_mode in FILE_MODES
        and change.path not in named
        and _is_among_tests(change.path, protect)
        and not matches_any(may_edit, change.path)
    )
    if not added:
        return ()
    has_tests = any(
        _is_among_tests(file.path, protect) for file in repository.files(case.head_tree)
    )
    return added if has_tests else ()


def _is_among_tests(path: str, protect: tuple[str, ...]) -> bool:
    return is_of_tests(path) or (not path.startswith(".") and matches_any(protect, path))


def without(repository: Repository, tree: str, added: tuple[Change, ...]) -> str:
    """Return a tree that lacks the new files.

    Raises:
        GitError: It could not be made.
    """
    gone = [replace(change, new_mode=GONE, new_blob="0" * len(change.new_blob)) for change in added]
    return repository.overlaid(tree, gone)


def fault(
    found: CheckResult, base: CheckResult, added: tuple[Change, ...], end: Callable[[], Ending]
) -> tuple[str, str]:
    """Return what is wrong with a result that its new files carry, and what kept verify from work.

    Both are empty where the result passes without them. What fails once may be unsteady: it is
    run again.

    Args:
        found: The evidence that would let it pass; its red tests may be red.
        base: That of the base.
        added: The new files.
        end: Runs verify without them.
    """
    ending = end()
    if ending.end is End.RED and not _is_fine(ending, found, base):
        ending = end()
    if ending.end in {End.MISSING, End.STOPPED, End.STARVED}:
        return "", ending.why
    if _is_fine(ending, found, base):
        return "", ""
    new = _new(ending, found)
    what = f"{shown(new[0])} fails" if new else f"verify ends with exit {ending.exit}"
    return (
        f"tampering: it passes only with {shown(added[0].path)}, a new file among the tests; "
        f"without such files {what}; have the code itself pass, or name what is new in the "
        "task's may_edit"
    ), ""


def _is_fine(ending: Ending, found: CheckResult, base: CheckResult) -> bool:
    had_none = ending.is_empty and (base.counts is None or base.counts.collected == 0)
    is_known = bool(ending.failed) and ending.exit == found.exit
    return not _new(ending, found) and (ending.end is End.GREEN or is_known or had_none)


def _new(ending: Ending, found: CheckResult) -> list[str]:
    return [name for name in ending.failed if name not in found.findings]
