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
    old, new = (_sources(repository, tree, paths) for tree in (case.head_tree, case.tree))
    if gone := sorted(test_names(old) - test_names(new)):
        hits.append(Hit(f"tests-gone-{len(gone)}", _gone(gone)))
    before, after = (sum(map(count_assertions, sources)) for sources in (old, new))
    words = f"{after} assertions in the changed tests, {before} at the base"
    if after < before:
        hits.append(Hit(f"tests-assertions-{before - after}", words))
    return tuple(hits), words if before or after else ""


def _is_test(change: Change) -> bool:
    return TEST_FILE.fullmatch(PurePosixPath(change.path).name) is not None


def _sources(repository: Repository, tree: str, paths: Iterable[str]) -> list[bytes]:
    """Return the Python files among the paths."""
    return [
        repository.read_blob(tree, path, LIMIT) or b"" for path in paths if path.endswith(".py")
    ]


def _gone(names: list[str]) -> str:
    more = f" and {len(names) - 1} more" if len(names) > 1 else ""
    return f"the test {names[0]}{more} of the base is gone"


def test_names(sources: Iterable[bytes]) -> set[str]:
    """Return the names of the test functions of Python files; none of what cannot be read."""
    return {
        node.name
        for source in sources
        for node in _nodes(source)
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef) and node.name.startswith("test")
    }


def count_assertions(source: bytes) -> int:
    """Return the number of assertions of a Python file that can fail; 0 where it cannot be read."""
    return sum(map(_asserts, _nodes(source)))


def _nodes(source: bytes) -> list[ast.AST]:
    try:
        return list(ast.walk(ast.parse(source)))
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return []


def _asserts(node: ast.AST) -> bool:
    if isinstance(node, ast.Assert):
        return not _holds_always(node.test)
    if not isinstance(node, ast.Call):
        return False
    called = node.func
    name = called.attr if isinstance(called, ast.Attribute) else getattr(called, "id", "")
    if name == "assertTrue" and node.args:
        return not _holds_always(node.args[0])
    if name in {"assertEqual", "assertIs"} and len(node.args) > 1:
        return not _is_alike(node.args[:2])
    return name.startswith("assert") or name in _EXPECTING


def _holds_always(test: ast.expr) -> bool:
    """Say whether an assertion holds whatever the code does, as far as its own words tell."""
    match test:
        case ast.Constant(value=value):
            return bool(value)
        case ast.BoolOp(op=ast.Or(), values=values):
            return any(map(_holds_always, values))
        case ast.BoolOp(op=ast.And(), values=values):
            return all(map(_holds_always, values))
        case ast.UnaryOp(op=ast.Not(), operand=ast.Constant(value=value)):
            return not value
        case ast.Compare(left=left, ops=[ast.Eq() | ast.Is()], comparators=[right]):
            return _is_alike([left, right])
        case ast.Tuple(elts=elements):
            return bool(elements)
        case _:
            return False


def _is_alike(expressions: list[ast.expr]) -> bool:
    one, other = map(ast.dump, expressions)
    return one == other
