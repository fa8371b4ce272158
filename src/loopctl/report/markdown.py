"""A report as Markdown in which no text can act as markup."""

from collections.abc import Iterable
from typing import assert_never

from loopctl.report.blocks import (
    Block,
    Bullets,
    Heading,
    Line,
    Paragraph,
    Shell,
    Span,
    Tone,
    Verbatim,
)
from loopctl.report.escape import code_block, code_span, for_markdown, one_line
from loopctl.report.plain import shell_lines


def to_markdown(blocks: Iterable[Block]) -> str:
    """Return the blocks as a Markdown document that ends in a newline."""
    return "\n\n".join(_block(block) for block in blocks) + "\n"


def _block(block: Block) -> str:
    match block:
        case Heading():
            return f"{'#' * block.level} {for_markdown(one_line(block.text))}"
        case Paragraph():
            return _line(block.line)
        case Verbatim():
            return code_block(block.text, "text")
        case Shell():
            return code_block("\n".join(shell_lines(block)), "sh")
        case Bullets():
            return "\n".join(
                _indented(f"- {_line(item.line)}", [_block(below) for below in item.below])
                for item in block.items
            )
        case _:
            assert_never(block)


def _indented(first: str, below: list[str]) -> str:
    rest = "\n\n".join(below)
    body = "".join(f"\n  {line}".rstrip(" ") for line in rest.split("\n")) if rest else ""
    return f"{first}\n{body}" if body else first


def _line(line: Line) -> str:
    return "".join(_span(span) for span in line)


def _span(span: Span) -> str:
    if span.tone is Tone.CODE:
        return code_span(span.text)
    text = for_markdown(" ".join(span.text.split())) if span.text.strip() else " "
    lead = " " if span.text[:1].isspace() and text != " " else ""
    trail = " " if span.text[-1:].isspace() and text != " " else ""
    if span.tone is Tone.PLAIN or span.tone is Tone.QUIET:
        return f"{lead}{text}{trail}"
    return f"{lead}**{text}**{trail}"
