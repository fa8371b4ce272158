"""What recent history left to be done, told from changed lines and commit messages: pure."""

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from enum import StrEnum
from typing import Final


class Trace(StrEnum):
    """What kind of unfinished work a commit shows."""

    MARKER = "marker"
    SKIPPED = "skipped"
    SUPPRESSED = "suppressed"
    REVERTED = "reverted"


@dataclass(frozen=True, slots=True)
class Line:
    """One line that a commit added or removed.

    Attributes:
        commit: Its full id.
        path: Of the file that has the line, or had it.
        text: The line.
    """

    commit: str
    path: str
    text: str


@dataclass(frozen=True, slots=True)
class Changed:
    """The lines that a commit changed, each tuple in the order of the patch."""

    removed: tuple[Line, ...]
    added: tuple[Line, ...]


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
        path: The file; empty for a revert that no line can stand for.
        text: The line, stripped; for a revert the one that stands for the whole.
        holders: How many lines of the file have the text in them at the head; 0 where it is to
            come again.
        subject: Of what was reverted; empty for another trace.
    """

    trace: Trace
    commit: str
    path: str
    text: str
    holders: int = 1
    subject: str = ""


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


def of_lines(added: Sequence[Line], head: Mapping[str, Sequence[str]]) -> tuple[Finding, ...]:
    """Return what the added lines show, in their order, each line of a file once.

    Args:
        added: Newest commit first.
        head: The stripped lines of each file at the head; what is not there is settled.
    """
    found: dict[tuple[str, str], Finding] = {}
    for line in added:
        key = (line.path, line.text.strip())
        trace = trace_of(line.text)
        holders = _holders(key[1], head.get(line.path, ()))
        if trace is not None and holders and key[1] in head[line.path]:
            found.setdefault(key, Finding(trace, line.commit, *key, holders))
    return tuple(found.values())


def _holders(text: str, lines: Sequence[str]) -> int:
    return sum(text in line for line in lines)


def of_messages(commits: Sequence[Commit]) -> tuple[Finding, ...]:
    """Return the reverts that nothing followed, without a line: newest first, as ``commits`` are.

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
            found.append(Finding(Trace.REVERTED, commit.id, "", "", 0, revert["subject"]))
        undone.update(reverted if not is_undone else ())
        later.add(subject)
    return tuple(found)


_DEFINES_A_TEST: Final = re.compile(
    r"^(async )?def test_|^class Test|^(it|test|describe)\(|^func Test[A-Z]"
)
_HAS_WORDS: Final = re.compile(r"\w{3}")


def with_line(finding: Finding, patch: Changed, head: Mapping[str, Sequence[str]]) -> Finding:
    """Return a revert with the line that stands for it.

    It is one that the revert took away and that is to come again: the first that defines a test,
    else the longest. Where it took none away, it is the longest that it put back, which is to go.

    Args:
        finding: One of :func:`of_messages`.
        patch: What the revert changed.
        head: The stripped lines of each file at the head.
    """
    gone = [one for one in patch.removed if one.text.strip() not in head.get(one.path, ())]
    back = [one for one in patch.added if one.text.strip() in head.get(one.path, ())]
    for lines in (gone, back):
        telling = [one for one in lines if _HAS_WORDS.search(one.text)]
        if telling:
            tests = (one for one in telling if _DEFINES_A_TEST.match(one.text.strip()))
            line = next(tests, max(telling, key=lambda one: len(one.text.strip())))
            text = line.text.strip()
            holders = 0 if lines is gone else _holders(text, head[line.path])
            return replace(finding, path=line.path, text=text, holders=holders)
    return finding


_HUNK: Final = re.compile(r"@@ -\d+(?:,(?P<old>\d+))? \+\d+(?:,(?P<new>\d+))? @@")


def changed_lines(commit: str, patch: str) -> Changed:
    """Return the lines that a patch without context removes and adds.

    Args:
        commit: Whose patch it is.
        patch: Of ``git diff --unified=0 --no-prefix``; files whose names git quotes are left out.
    """
    removed: list[Line] = []
    added: list[Line] = []
    before, after, old, new = "", "", 0, 0
    for line in patch.split("\n"):
        if old and line.startswith("-"):
            old -= 1
            removed += [Line(commit, before, line[1:])] if before else []
        elif new and line.startswith("+"):
            new -= 1
            added += [Line(commit, after, line[1:])] if after else []
        elif hunk := _HUNK.match(line):
            old, new = int(hunk["old"] or 1), int(hunk["new"] or 1)
        elif line.startswith("--- "):
            before = _named(line)
        elif line.startswith("+++ "):
            after = _named(line)
    return Changed(tuple(removed), tuple(added))


def _named(header: str) -> str:
    path = header[4:].removesuffix("\t").rstrip("\r")
    return "" if path == "/dev/null" or path.startswith('"') else path
