"""Tests that a task may edit: whether fewer of them, or fewer assertions, land is for a person."""

import ast
from collections.abc import Iterable
from pathlib import PurePosixPath
from typing import Final

from loopctl.judges import tamper
from loopctl.judges.case import Case
from loopctl.judges.globs import matches_any
from loopctl.judges.paths import GONE
from loopctl.judges.runs import TEST_FILE
from loopctl.judges.sections import LIMIT
from loopctl.ports import Repository
from loopctl.trees import Change
from loopctl.verdict import CheckResult, Hit

_EXPECTING: Final = frozenset({"raises", "warns", "fail"})
"""Calls that assert something, besides those whose names begin so."""


def edited_tests(repository: Repository, case: Case) -> tuple[Change, ...]:
    """Return the changes of tests that the base has and that the task may edit.

    Raises:
        GitError: A tree could not be read.
    """
    may_edit = case.candidate.task.may_edit
    if not may_edit:
        return ()
    return tuple(
        change
        for change in repository.changes(case.head_tree, case.tree)
        if change.old_mode != GONE and _is_test(change) and matches_any(may_edit, change.path)
    )


def compared(
    repository: Repository, case: Case, edited: tuple[Change, ...], found: CheckResult
) -> tuple[tuple[Hit, ...], str]:
    """Return what a person must let land, and the comparison in words; nothing without edits.

    Args:
        repository: The trees.
        case: The candidate.
        edited: From :func:`edited_tests`.
        found: The evidence of a green verify, with the counts of both sides.
    """
    if not edited:
        return (), ""
    hits = []
    if found.counts is not None:
        shrunk = tamper.fewer(found.counts, found.base_counts)
        hits = [Hit(f"tests-{key}", words) for key, words in shrunk]
    # New files count too: a test may have moved there.
    changes = repository.changes(case.head_tree, case.tree)
    paths = [change.path for change in changes if _is_test(change)]
    before = _assertions(repository, case.head_tree, paths)
    after = _assertions(repository, case.tree, paths)
    words = f"{after} assertions in the changed tests, {before} at the base"
    if after < before:
        hits.append(Hit(f"tests-assertions-{before - after}", words))
    return tuple(hits), words if before or after else ""


def _is_test(change: Change) -> bool:
    return TEST_FILE.fullmatch(PurePosixPath(change.path).name) is not None


def _assertions(repository: Repository, tree: str, paths: Iterable[str]) -> int:
    """Return how often the Python files among the paths assert something."""
    found = (
        repository.read_blob(tree, path, LIMIT) or b"" for path in paths if path.endswith(".py")
    )
    return sum(map(count_assertions, found))


def count_assertions(source: bytes) -> int:
    """Return the number of assertions of a Python file; 0 where it cannot be read."""
    try:
        nodes = ast.walk(ast.parse(source))
        return sum(map(_asserts, nodes))
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return 0


def _asserts(node: ast.AST) -> bool:
    if not isinstance(node, ast.Call):
        return isinstance(node, ast.Assert)
    called = node.func
    name = called.attr if isinstance(called, ast.Attribute) else getattr(called, "id", "")
    return name.startswith("assert") or name in _EXPECTING
