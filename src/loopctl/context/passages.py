"""Cuts texts into passages of the size in which they are recalled, and queries into terms; pure."""

import re
from collections.abc import Iterator
from typing import Final

from loopctl.past import text_bytes

PASSAGE_BYTES: Final = 1200
"""Of a passage in UTF-8, and so of what one memory shows."""

PASSAGES: Final = 240
"""Of one document."""

TERMS: Final = 40
"""Of one query: the first that it has."""

_TERM_CHARS: Final = 64
_QUERY_CHARS: Final = 8000
_WORD: Final = re.compile(r"[^\W_]+")
_HUMP: Final = re.compile(r"(?<=[a-z0-9])(?=[A-Z])")
_FILLERS: Final = """
a an and are as at be been but by can do does for from had has have how if in into is it its may must
no not of on or our should so such than that the their them then there these they this to up was we
were what when where which while who why will with would you your
"""
_EMPTY: Final = frozenset(_FILLERS.split())


def passages(text: str) -> Iterator[str]:
    """Yield whole lines, up to ``PASSAGE_BYTES`` at a time; rather whole paragraphs.

    What a line has beyond that is left out, and what a text has beyond ``PASSAGES``.
    """
    count, lines, size = 0, list[str](), 0
    for line in text.splitlines():
        one = _bounded(line.rstrip())
        ends = not one and size > PASSAGE_BYTES // 2
        if lines and (ends or size + text_bytes(one) + 1 > PASSAGE_BYTES):
            yield "\n".join(lines)
            count, lines, size = count + 1, [], 0
            if count == PASSAGES:
                return
        if one or lines:
            lines.append(one)
            size += text_bytes(one) + 1
    if any(lines):
        yield "\n".join(lines)


def terms(query: str) -> tuple[str, ...]:
    """Return the words of free text that can find something: no fillers, each once, in order.

    The words that an identifier is made of count as well. Nothing but letters and digits is in
    them, so that none can be a search engine's syntax.
    """
    found: dict[str, None] = {}
    for word in _WORD.findall(query[:_QUERY_CHARS]):
        for term in (word, *_HUMP.split(word)):
            small = term[:_TERM_CHARS].lower()
            if small not in _EMPTY and (len(small) > 1 or not small.isascii()):
                found[small] = None
    return tuple(found)[:TERMS]


def _bounded(line: str) -> str:
    if text_bytes(line) < PASSAGE_BYTES:
        return line
    return line.encode("utf-8", "replace")[: PASSAGE_BYTES - 1].decode("utf-8", "ignore")
