"""A report as lines without control codes: for pipes, files and ``loop status``."""

from collections.abc import Iterable
from typing import assert_never

from loopctl.report.blocks import Block, Bullets, Heading, Line, Paragraph, Shell, Verbatim
from loopctl.report.escape import one_line, visible

INDENT = "  "


def to_plain(blocks: Iterable[Block]) -> str:
    """Return the blocks as text that ends in a newline."""
    lines: list[str] = []
    for block in blocks:
        if isinstance(block, Heading) and lines:
            lines.append("")
        lines.extend(block_lines(block, ""))
    return "".join(f"{line.rstrip()}\n" for line in lines)


def line_text(line: Line) -> str:
    """Return the spans of a line as one harmless line."""
    return one_line("".join(span.text for span in line))


def block_lines(block: Block, indent: str) -> list[str]:
    """Return a block as lines, each behind ``indent``."""
    match block:
        case Heading():
            text = one_line(block.text)
            return [indent + text, indent + ("=" if block.level == 1 else "-") * len(text)]
        case Paragraph():
            return [indent + line_text(block.line)]
        case Verbatim():
            body = visible(block.text).strip("\n")
            return [f"{indent}| {line}" for line in body.split("\n")]
        case Shell():
            return [indent + one for one in shell_lines(block)]
        case Bullets():
            lines: list[str] = []
            for item in block.items:
                lines.append(f"{indent}- {line_text(item.line)}")
                for below in item.below:
                    lines.extend(block_lines(below, indent + INDENT))
            return lines
        case _:
            assert_never(block)


def shell_lines(block: Shell) -> list[str]:
    """Return commands, each on a line, their explanations in one column where that fits."""
    wide = 60
    width = max((len(one) for one, _ in block.commands if len(one) <= wide), default=0)
    return [
        f"{visible(one):{width}}  # {one_line(why)}" if why else visible(one)
        for one, why in block.commands
    ]
