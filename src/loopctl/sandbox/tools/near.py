"""What a file holds instead of the text that an edit looked for."""

import difflib
from collections.abc import Sequence
from typing import Final

from loopctl.sandbox.tools.reading import numbered

_LINES: Final = 5000
"""Of a file that are compared; the comparison takes its time."""
_CHARS: Final = 200
_SHOWN: Final = 3
_WINDOW: Final = 40


def what_is_near(text: str, old: str) -> str:
    """Return what the file holds that is like ``old``, with line numbers; a sentence or more."""
    lines = [line.removesuffix("\r") for line in text.split("\n")]
    wanted = [line.removesuffix("\r") for line in old.strip("\r\n").split("\n")]
    if place := _same_words(lines, wanted):
        rows = numbered(lines[place - 1 : place - 1 + min(len(wanted), _WINDOW)], place)
        return _shown("These lines differ from it in white space alone:", rows)
    rows = [
        row for number in _alike(lines, wanted) for row in numbered([lines[number]], number + 1)
    ]
    if rows:
        return _shown("These lines are near:", rows)
    return "Nothing in it is like that; read the file"


def _same_words(lines: Sequence[str], wanted: Sequence[str]) -> int:
    """Return the number of the first line from which the words are the same; 0 for none."""
    words = [line.split() for line in wanted]
    if not any(words):
        return 0
    have = [line.split() for line in lines]
    for start in range(len(have) - len(words) + 1):
        if have[start] == words[0] and have[start : start + len(words)] == words:
            return start + 1
    return 0


def _alike(lines: Sequence[str], wanted: Sequence[str]) -> list[int]:
    """Return the indexes of the lines that are most like the first line that was wanted."""
    first = next((line.strip() for line in wanted if line.strip()), "")
    if not first:
        return []
    places: dict[str, int] = {}
    for index, line in enumerate(lines[:_LINES]):
        places.setdefault(line.strip()[:_CHARS], index)
    found = difflib.get_close_matches(first[:_CHARS], places, n=_SHOWN)
    return [places[line] for line in found]


def _shown(head: str, rows: Sequence[str]) -> str:
    # Bytes that are no UTF-8 came here as half letters, which no result may hold.
    text = "\n".join([head, *rows])
    return text.encode("utf-8", "replace").decode()
