"""Type errors read from a checker's output as (file, code, message): no line numbers.

One reader serves all checkers, for their one-line formats are told apart by their shape:

* mypy: ``a.py:3: error: Message  [code]``, with or without a column;
* ty: ``a.py:3:5: error[code] Message``;
* pyright: ``  /path/a.py:3:5 - error: Message (code)``;
* tsc: ``a.ts(3,5): error TS2322: Message``, or without a place;
* cargo: ``src/a.rs:3:5: error[E0308]: Message``;
* go vet: ``./a.go:3:5: Message`` or ``vet: ./a.go:3:5: Message``.
"""

import io
import itertools
import re
from collections import Counter
from collections.abc import Iterator
from hashlib import sha256
from typing import Final

from loopctl.judges.evidence import printable

_PLACE: Final = r"(?P<file>[^\s:][^:\n]*?)"
_SHAPES: Final = tuple(
    re.compile(shape)
    for shape in (
        rf"{_PLACE}:\d+(?::\d+)?(?::\d+:\d+)?: error: (?P<message>.*)",
        rf"{_PLACE}:\d+:\d+: (?:error|fatal)\[(?P<code>[\w-]+)\]:? (?P<message>.*)",
        rf"\s*{_PLACE}:\d+:\d+ - error: (?P<message>.*)",
        r"(?P<file>\S[^\n]*?)\(\d+,\d+\): error (?P<code>TS\d+): (?P<message>.*)",
        r"(?P<file>)error (?P<code>TS\d+): (?P<message>.*)",
        r"(?:vet: )?(?P<file>[^\s:][^:\n]*\.go):\d+(?::\d+)?: (?P<code>)(?P<message>.*)",
        rf"{_PLACE}: error: (?P<message>.*)",
    )
)
_CODE: Final = re.compile(r"[a-z][\w-]*")
_PART: Final = 1 << 14
_MARKS: Final = ("error", "fatal[", ".go:")
_LONGEST_LINE: Final = 4096
_LONGEST_RAW_LINE: Final = 4 * _LONGEST_LINE
_NUMBERS: Final = (
    (re.compile(r"\bline \d+"), "line N"),
    (re.compile(r"\(\d+,\d+\)"), "(N,N)"),
    (re.compile(r":\d+(?::\d+)?\b"), ":N"),
)
_VOLATILE: Final = re.compile(r"\d+(?:\.\d+)?")
_VOLATILE_BYTES: Final = re.compile(_VOLATILE.pattern.encode())


def findings(output: bytes, root: str = "") -> tuple[str, ...]:
    """Return each error as ``file: code: message``, sorted; equal ones as often as they stand.

    Args:
        output: A checker's.
        root: Where the checkout is; taken off absolute paths below it.
    """
    found: Counter[str] = Counter()
    for line, count in _lines(output):
        if any(mark in line for mark in _MARKS):
            found[_finding(line.rstrip()[:_LONGEST_LINE], root)] += count
    del found[""]
    return tuple(sorted(found.elements()))


def _lines(output: bytes) -> Iterator[tuple[str, int]]:
    """Yield printable lines and how often each stands there; a line may come up again later.

    A part at a time: all that is printable of an output may be eight times as long as it.
    """
    lines = iter(io.BytesIO(output))
    while part := Counter(itertools.islice(lines, _PART)):
        for raw, count in part.items():
            text = printable(raw[:_LONGEST_RAW_LINE].decode("utf-8", "replace"))
            for line in text.split("\n"):
                yield line, count


def _finding(line: str, root: str) -> str:
    for shape in _SHAPES:
        match = shape.fullmatch(line)
        if match is not None:
            parts = match.groupdict()
            message, code = parts["message"], parts.get("code")
            if code is None:
                message, code = _split_code(message)
            file = _relative(parts["file"], root)
            return f"{file}: {code}: {_steady(_relative(message, root))}"
    return ""


def _split_code(message: str) -> tuple[str, str]:
    """Return a message without the code that stands in brackets at its end, and the code."""
    for opening, closing in ("[]", "()"):
        head, bracket, code = message.removesuffix(closing).rpartition(opening)
        if bracket and message.endswith(closing) and head.endswith(" ") and _CODE.fullmatch(code):
            return head, code
    return message, ""


def _relative(text: str, root: str) -> str:
    return (text.replace(f"{root}/", "") if root else text).removeprefix("./")


def _steady(message: str) -> str:
    for pattern, stands_for in _NUMBERS:
        message = pattern.sub(stands_for, message)
    return message.strip()


def normalised(output: bytes, root: str = "") -> str:
    """Return an output that no reader knows so that two of the same kind are equal.

    Numbers (lines, times, counts) and the place of the checkout are taken out, and the order of
    the lines does not count. What is too long of a line is told by its digest.
    """
    lines: Counter[str] = Counter()
    for line, count in _lines(output):
        lines[_VOLATILE.sub("N", _relative(line, root).strip())] += count
    del lines[""]
    rests = sorted(_rest(raw, root) for raw in io.BytesIO(output) if len(raw) > _LONGEST_RAW_LINE)
    return "\n".join((*(f"{lines[line]} {line}" for line in sorted(lines)), *rests))


def _rest(line: bytes, root: str) -> str:
    plain = line.replace(f"{root}/".encode(errors="surrogateescape"), b"") if root else line
    return sha256(_VOLATILE_BYTES.sub(b"N", plain)).hexdigest()
