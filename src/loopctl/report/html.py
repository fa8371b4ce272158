"""A report as one self-contained HTML page: no scripts, no links to anywhere, all text escaped."""

from collections.abc import Iterable
from typing import Final, assert_never

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
from loopctl.report.escape import for_html, one_line
from loopctl.report.plain import shell_lines

_STYLE: Final = """
:root { color-scheme: light dark; }
body { font: 16px/1.5 system-ui, sans-serif; max-width: 60rem; margin: 2rem auto; padding: 0 1rem; }
h2 { border-bottom: 1px solid #8886; padding-bottom: .2rem; margin-top: 2rem; }
pre, code { font: 14px/1.45 ui-monospace, monospace; }
pre { overflow-x: auto; padding: .6rem .8rem; border: 1px solid #8886; border-radius: 4px; }
li { margin: .3rem 0; }
.quiet { opacity: .7; } .good { color: #1a7f37; } .bad { color: #c62828; } .warn { color: #b26a00; }
"""
_POLICY: Final = (
    "default-src 'none'; style-src 'unsafe-inline'; base-uri 'none'; form-action 'none'"
)


def to_html(blocks: Iterable[Block], title: str) -> str:
    """Return the blocks as an HTML document."""
    body = "\n".join(_block(block) for block in blocks)
    return (
        '<!doctype html>\n<html lang="en">\n<head>\n<meta charset="utf-8">\n'
        f'<meta http-equiv="Content-Security-Policy" content="{_POLICY}">\n'
        '<meta name="viewport" content="width=device-width, initial-scale=1">\n'
        f"<title>{for_html(one_line(title))}</title>\n<style>{_STYLE}</style>\n</head>\n"
        f"<body>\n{body}\n</body>\n</html>\n"
    )


def _block(block: Block) -> str:
    match block:
        case Heading():
            return f"<h{block.level}>{for_html(one_line(block.text))}</h{block.level}>"
        case Paragraph():
            return f"<p>{_line(block.line)}</p>"
        case Verbatim():
            return f"<pre>{for_html(block.text.strip(chr(10)))}</pre>"
        case Shell():
            return f"<pre><code>{for_html(chr(10).join(shell_lines(block)))}</code></pre>"
        case Bullets():
            items = "".join(
                f"<li>{_line(item.line)}{''.join(_block(below) for below in item.below)}</li>\n"
                for item in block.items
            )
            return f"<ul>\n{items}</ul>"
        case _:
            assert_never(block)


def _line(line: Line) -> str:
    return "".join(_span(span) for span in line)


def _span(span: Span) -> str:
    text = for_html(span.text)
    match span.tone:
        case Tone.PLAIN:
            return text
        case Tone.STRONG:
            return f"<strong>{text}</strong>"
        case Tone.CODE:
            return f"<code>{text}</code>"
        case Tone.QUIET | Tone.GOOD | Tone.BAD | Tone.WARN:
            return f'<span class="{span.tone.value}">{text}</span>'
        case _:
            assert_never(span.tone)
