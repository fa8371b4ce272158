"""Makes text that a worker or a repository provided harmless to show, and visible as it is.

Colours alone (SGR sequences) are dropped. Every other control, format or unpaired character, such
as an escape sequence, a bidirectional override or a byte that was no UTF-8, is shown as the escape
that Python would write for it.
"""

import re
import unicodedata
from typing import Final

_COLOURS: Final = re.compile(r"\x1b\[[0-9;:]*m")
_NEWLINES: Final = re.compile(r"\r\n?")
_MARKDOWN: Final = re.compile(r"([\\`*_\[\]<>|&~$])")
_BLOCK_START: Final = re.compile(r"^(\s*)([#+=-]|\d+(?=[.)]))", re.MULTILINE)
_LAST_BYTE: Final = 0xFF
_LAST_OF_PLANE_0: Final = 0xFFFF
_JOINERS: Final = frozenset("\u200c\u200d")


def _shown(char: str) -> str:
    if char.isprintable() or char in _JOINERS:
        return char
    if unicodedata.category(char) == "Zs":
        return " "
    code = ord(char)
    if code <= _LAST_BYTE:
        return f"\\x{code:02x}"
    return f"\\u{code:04x}" if code <= _LAST_OF_PLANE_0 else f"\\U{code:08x}"


def visible(text: str) -> str:
    """Return ``text`` without anything that moves a cursor, hides or reorders; lines are kept."""
    if text.isprintable():
        return text
    plain = _NEWLINES.sub("\n", _COLOURS.sub("", text))
    return "".join(char if char in "\n\t" else _shown(char) for char in plain).expandtabs(4)


def one_line(text: str, limit: int = 0) -> str:
    """Return ``text`` on one line, made visible; cut with an ellipsis at ``limit`` characters."""
    line = " ".join(visible(text).split())
    return line[: limit - 1] + "…" if limit and len(line) > limit else line


def for_markdown(text: str) -> str:
    """Return ``text`` so that Markdown shows it as it stands: no markup, links, images or HTML."""
    escaped = _MARKDOWN.sub(r"\\\1", visible(text))
    return _BLOCK_START.sub(_escape_block_start, escaped)


def _escape_block_start(match: re.Match[str]) -> str:
    space, mark = match.groups()
    return f"{space}{mark}\\" if mark.isdigit() else f"{space}\\{mark}"


def code_span(text: str) -> str:
    """Return ``text`` as Markdown code within a line, whatever backticks it holds."""
    line = one_line(text)
    fence = "`" * (_longest_run(line) + 1)
    pad = " " if line.startswith("`") or line.endswith("`") or not line else ""
    return f"{fence}{pad}{line}{pad}{fence}"


def code_block(text: str, language: str = "") -> str:
    """Return ``text`` as a fenced Markdown block that nothing inside can close."""
    body = visible(text).rstrip("\n")
    fence = "`" * max(3, _longest_run(body) + 1)
    return f"{fence}{language}\n{body}\n{fence}"


def _longest_run(text: str) -> int:
    return max((len(run) for run in re.findall("`+", text)), default=0)


def for_html(text: str) -> str:
    """Return ``text`` for the inside of an HTML element or a quoted attribute."""
    from html import escape  # noqa: PLC0415 - its tables cost more than all of this module

    return escape(visible(text), quote=True)
