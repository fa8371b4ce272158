"""What ``$'…'`` and ``$NAME`` stand for in a word."""

import re
from typing import Final

from loopctl.sandbox.floor.marks import COMPUTED, END, QUOTED, VARIABLE

_ESCAPE: Final = re.compile(
    r"\\(?:x([0-9a-fA-F]{1,2})|u([0-9a-fA-F]{1,4})|U([0-9a-fA-F]{1,8})|([0-7]{1,3})|c(.)|(.))",
    re.DOTALL,
)
_PLAIN: Final = {"n": "\n", "t": "\t", "r": "\r", "a": "\a", "b": "\b", "f": "\f", "v": "\v"}
_NAME: Final = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")
_LAST: Final = 0x10FFFF


def c_quoted(text: str, at: int) -> tuple[str, int]:
    """Return what a ``$'`` before ``at`` holds, and where it ends; -1 where it does not."""
    end = at
    while end < len(text) and text[end] != "'":
        end += 2 if text[end] == "\\" else 1
    if end >= len(text):
        return "", -1
    return unescaped(text[at:end]), end + 1


def unescaped(text: str) -> str:
    """Return a text with the escapes of C, as ``$'…'``, ``echo -e`` and ``printf`` know them."""
    return _ESCAPE.sub(_letter, text)


def _letter(match: re.Match[str]) -> str:
    hexadecimal = match[1] or match[2] or match[3]
    if hexadecimal:
        code = int(hexadecimal, 16)
        return chr(code) if code <= _LAST else COMPUTED
    if match[4]:
        return chr(int(match[4], 8) & 0xFF)
    if match[5]:
        return chr(ord(match[5]) & 0x1F)
    return _PLAIN.get(match[6], match[6])


def parameter(text: str, at: int, *, is_quoted: bool) -> tuple[str, int]:
    """Return the mark for the parameter whose name begins at ``at``, and where it ends."""
    match = _NAME.match(text, at)
    if match is not None:
        return f"{QUOTED if is_quoted else VARIABLE}{match[0]}{END}", match.end()
    following = text[at : at + 1]
    if following and following in "@*#?-$!0123456789":
        return COMPUTED, at + 1
    return "$", at
