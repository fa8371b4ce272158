"""A report in the colours of a terminal; commands are never wrapped, so that they can be pasted."""

import io
from collections.abc import Iterable
from typing import Final, assert_never

from rich.console import Console
from rich.padding import Padding
from rich.text import Text

from loopctl.report.blocks import (
    Block,
    Bullets,
    Heading,
    Line,
    Paragraph,
    Shell,
    Tone,
    Verbatim,
)
from loopctl.report.escape import one_line, visible
from loopctl.report.plain import shell_lines

STYLES: Final = {
    Tone.PLAIN: "",
    Tone.STRONG: "bold",
    Tone.QUIET: "dim",
    Tone.GOOD: "green",
    Tone.BAD: "red",
    Tone.WARN: "yellow",
    Tone.CODE: "cyan",
}


def to_terminal(blocks: Iterable[Block]) -> str:
    """Return the blocks as text for a terminal; ``plain.py`` is for everything else."""
    page = io.StringIO()
    console = Console(file=page, markup=False, highlight=False, emoji=False, force_terminal=True)
    for block in blocks:
        _print(console, block, 0)
    return page.getvalue()


def _print(console: Console, block: Block, indent: int) -> None:
    match block:
        case Heading():
            style = "bold underline" if block.level == 1 else "bold"
            console.print()
            console.print(Text(one_line(block.text), style=style))
        case Paragraph():
            console.print(Padding(_text(block.line), (0, 0, 0, indent)))
        case Verbatim():
            for line in visible(block.text).strip("\n").split("\n"):
                console.print(Text(f"{' ' * indent}| {line}", style="dim"), soft_wrap=True)
        case Shell():
            for line in shell_lines(block):
                console.print(Text(" " * indent + line, style="cyan"), soft_wrap=True)
        case Bullets():
            for item in block.items:
                text = Text("- ").append_text(_text(item.line))
                console.print(Padding(text, (0, 0, 0, indent)))
                for below in item.below:
                    _print(console, below, indent + 2)
        case _:
            assert_never(block)


def _text(line: Line) -> Text:
    text = Text()
    for span in line:
        text.append(visible(span.text).replace("\n", " "), style=STYLES[span.tone])
    return text
