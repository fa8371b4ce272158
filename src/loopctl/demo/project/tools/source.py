"""Edits of Python source at the places that ``ast`` names; all else stays as it is."""

import ast
from collections.abc import Iterable
from pathlib import Path
from typing import NamedTuple


class Edit(NamedTuple):
    """Text that takes the place of what stands between two positions of a file."""

    start: tuple[int, int]
    end: tuple[int, int]
    text: str


def replacing(node: ast.expr | ast.stmt, text: str) -> Edit:
    """Return the edit that puts ``text`` in the place of ``node``."""
    return Edit((node.lineno, node.col_offset), (node.end_lineno, node.end_col_offset), text)


def inserting(line: int, text: str) -> Edit:
    """Return the edit that puts ``text`` before a line, counted from 1."""
    return Edit((line, 0), (line, 0), text)


def after_imports(tree: ast.Module) -> int:
    """Return the line behind the docstring and the imports at the top of a module."""
    line = 1
    for position, node in enumerate(tree.body):
        is_docstring = position == 0 and isinstance(node, ast.Expr)
        if not is_docstring and not isinstance(node, ast.Import | ast.ImportFrom):
            break
        line = node.end_lineno + 1
    return line


def change(path: Path, edits: Iterable[Edit]) -> int:
    """Make the edits, none of which may overlap, and return how many they were."""
    lines = path.read_bytes().splitlines(keepends=True)
    done = 0
    for start, end, text in sorted(edits, reverse=True):
        first, last = start[0] - 1, end[0] - 1
        tail = lines[last][end[1] :] if last < len(lines) else b""
        head = lines[first][: start[1]] if first < len(lines) else b""
        lines[first : last + 1] = [head + text.encode() + tail]
        done += 1
    if done:
        path.write_bytes(b"".join(lines))
    return done
