"""Small faults to plant in a text: a comparison turned round, a constant changed, a line gone.

They are made from single lines by their look, without a grammar, so that any language will do.
A file keeps its other lines as they are, line endings included.
"""

import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Final

Swap = tuple[re.Pattern[str], Callable[[re.Match[str]], str]]


def _to(text: str) -> Callable[[re.Match[str]], str]:
    return lambda _found: text


_SWAPS: Final[tuple[Swap, ...]] = (
    (re.compile(r"(?<![=!<>])==(?!=)"), _to("!=")),
    (re.compile(r"!=(?!=)"), _to("==")),
    (re.compile(r"<=(?![>=])"), _to(">")),
    (re.compile(r"(?<![-=])>=(?!=)"), _to("<")),
    (re.compile(r"(?<= )<(?= )"), _to(">=")),
    (re.compile(r"(?<= )>(?= )"), _to("<=")),
    (re.compile(r"\bTrue\b"), _to("False")),
    (re.compile(r"\bFalse\b"), _to("True")),
    (re.compile(r"\btrue\b"), _to("false")),
    (re.compile(r"\bfalse\b"), _to("true")),
    (re.compile(r"(?<= )and(?= )"), _to("or")),
    (re.compile(r"(?<= )or(?= )"), _to("and")),
    (re.compile(r"&&"), _to("||")),
    (re.compile(r"\|\|"), _to("&&")),
    (re.compile(r"(?<= )\+(?= )"), _to("-")),
    (re.compile(r"(?<= )-(?= )"), _to("+")),
    (re.compile(r"(?<= )\*(?= )"), _to("+")),
    (re.compile(r"(?<![\w.])\d{1,9}(?![\w.])"), lambda found: str(int(found[0]) + 1)),
    (re.compile(r"(?<=[\"'])[A-Za-z][^\"'\\{}%]*(?=[\"'])"), lambda found: found[0] + "~"),
)
_REMARK: Final = re.compile(
    r"""\s*(\#|//|/\*|\*|--|;|"{3}|'{3}|import\b|from\b|use\b|package\b|include\b)"""
)


@dataclass(frozen=True, slots=True)
class Mutant:
    """A file with one fault planted.

    Attributes:
        path: Of the tree.
        line: Counted from one.
        was: The line as it was, without the space around it.
        now: The line with the fault; empty where it is gone.
        content: The whole file with the fault.
    """

    path: str
    line: int
    was: str
    now: str
    content: bytes


def mutants(path: str, content: bytes, lines: frozenset[int] | None = None) -> Iterator[Mutant]:
    """Yield the faults that can be planted in a file, one to a line, in its order.

    Args:
        path: Of the file in its tree.
        content: Of the file; what is no UTF-8 text has no mutants.
        lines: The numbers of the lines that may be changed; ``None`` for all.

    Yields:
        Changed lines; only where there is none, each line that could be taken out.
    """
    try:
        text = content.decode()
    except UnicodeDecodeError:
        return
    kept = text.splitlines(keepends=True)
    numbers = [
        number
        for number in range(1, len(kept) + 1)
        if (lines is None or number in lines) and kept[number - 1].strip()
    ]
    changed = [(number, line) for number in numbers if (line := _changed(kept[number - 1]))]
    for number, line in changed or [(number, "") for number in numbers]:
        planted = [*kept[: number - 1], line, *kept[number:]]
        yield Mutant(
            path, number, kept[number - 1].strip(), line.strip(), "".join(planted).encode()
        )


def _changed(line: str) -> str:
    """Return a line with its first fault; empty where none can be planted."""
    if _REMARK.match(line):
        return ""
    for pattern, now in _SWAPS:
        if found := pattern.search(line):
            return line[: found.start()] + now(found) + line[found.end() :]
    return ""
