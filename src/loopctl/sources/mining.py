"""What recent history left to be done, told from added lines and commit messages: pure."""

import re
from collections.abc import Sequence
from dataclasses import dataclass
from enum import StrEnum
from typing import Final


class Trace(StrEnum):
    """What kind of unfinished work a commit shows."""

    MARKER = "marker"
    SKIPPED = "skipped"
    SUPPRESSED = "suppressed"
    REVERTED = "reverted"


@dataclass(frozen=True, slots=True)
class Added:
    """One line that a commit added.

    Attributes:
        commit: Its full id.
        path: Of the file after the commit.
        text: The line.
    """

    commit: str
    path: str
    text: str


@dataclass(frozen=True, slots=True)
class Commit:
    """One commit of the looked-at history.

    Attributes:
        id: In full.
        message: The whole of it.
    """

    id: str
    message: str


@dataclass(frozen=True, slots=True)
class Finding:
    """Unfinished work, and what shows it.

    Attributes:
        path: Where; empty for a revert.
        text: The line, or the subject of what was reverted.
    """

    trace: Trace
    commit: str
    path: str
    text: str


_TRACES: Final = (
    (
        Trace.SKIPPED,
        re.compile(
            r"@pytest\.mark\.(skip|skipif|xfail)\b|\bpytest\.(skip|xfail)\(|@unittest\.(skip\w*|expectedFailure)\b"
            r"|\b(it|test|describe)\.(skip|todo)\(|\bx(it|describe)\(|#\[ignore\b|\bt\.Skip(f|Now)?\("
        ),
    ),
    (
        Trace.SUPPRESSED,
        re.compile(
            r"#\s*type:\s*ignore\b|#\s*noqa\b|#\s*(pyright|ty|pylint):\s*(ignore|disable)\b"
            r"|//\s*@ts-(ignore|expect-error)\b|\beslint-disable\b|#!?\[allow\(|//\s*nolint\b"
        ),
    ),
    (Trace.MARKER, re.compile(r"(#|//|/\*|--|<!--|;).*?\b(TODO|FIXME|XXX)\b")),
)
_REVERT: Final = re.compile(r'^Revert "(?P<subject>.*)"$')
_REVERTS: Final = re.compile(r"^This reverts commit ([0-9a-f]{7,64})\b", re.MULTILINE)


def trace_of(line: str) -> Trace | None:
    """Return what an added line shows; ``None`` where that is nothing."""
    return next((trace for trace, pattern in _TRACES if pattern.search(line)), None)


def of_lines(added: Sequence[Added], still: frozenset[tuple[str, str]]) -> tuple[Finding, ...]:
    """Return what the added lines show, in their order, each line of a file once.

    Args:
        added: Newest commit first.
        still: Path and stripped text of lines that the head has; others are settled.
    """
    found: dict[tuple[str, str], Finding] = {}
    for line in added:
        key = (line.path, line.text.strip())
        trace = trace_of(line.text)
        if trace is not None and key in still:
            found.setdefault(key, Finding(trace, line.commit, *key))
    return tuple(found.values())


def of_messages(commits: Sequence[Commit]) -> tuple[Finding, ...]:
    """Return the reverts that nothing followed: newest first, as ``commits`` are.

    A later commit with the reverted subject, or one that reverts the revert, is a follow-up.
    """
    found: list[Finding] = []
    later: set[str] = set()
    undone: set[str] = set()
    for commit in commits:
        subject = commit.message.partition("\n")[0].strip()
        reverted = _REVERTS.findall(commit.message)
        is_undone = any(commit.id.startswith(one) for one in undone)
        if (revert := _REVERT.match(subject)) and not is_undone and revert["subject"] not in later:
            found.append(Finding(Trace.REVERTED, commit.id, "", revert["subject"]))
        undone.update(reverted if not is_undone else ())
        later.add(subject)
    return tuple(found)


_HUNK: Final = re.compile(r"@@ -\d+(?:,(?P<old>\d+))? \+\d+(?:,(?P<new>\d+))? @@")


def added_lines(commit: str, patch: str) -> tuple[Added, ...]:
    """Return the lines that a patch without context adds.

    Args:
        commit: Whose patch it is.
        patch: Of ``git diff --unified=0 --no-prefix``; files whose names git quotes are left out.
    """
    found: list[Added] = []
    path, old, new = "", 0, 0
    for line in patch.split("\n"):
        if old and line.startswith("-"):
            old -= 1
        elif new and line.startswith("+"):
            new -= 1
            if path:
                found.append(Added(commit, path, line[1:]))
        elif hunk := _HUNK.match(line):
            old, new = int(hunk["old"] or 1), int(hunk["new"] or 1)
        elif line.startswith("+++ "):
            path = line[4:].removesuffix("\t").rstrip("\r")
            path = "" if path == "/dev/null" or path.startswith('"') else path
    return tuple(found)
