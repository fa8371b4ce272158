import re
import unicodedata

import pytest
from hypothesis import given
from hypothesis import strategies as st

from loopctl.report.escape import (
    code_block,
    code_span,
    for_html,
    for_markdown,
    one_line,
    visible,
)

ANY_TEXT = st.text(alphabet=st.characters(exclude_categories=()))


@pytest.mark.parametrize(
    ("raw", "shown"),
    [
        ("plain", "plain"),
        ("\x1b[31mred\x1b[0m", "red"),
        ("\x1b[2J", "\\x1b[2J"),
        ("\x1b]0;title\x07", "\\x1b]0;title\\x07"),
        ("a\rb\r\nc", "a\nb\nc"),
        ("user\u202etxt.exe", "user\\u202etxt.exe"),
        ("a\u2066b\u2069", "a\\u2066b\\u2069"),
        ("zero\u200bwidth", "zero\\u200bwidth"),
        ("\ufeffbom", "\\ufeffbom"),
        ("tag\U000e0041", "tag\\U000e0041"),
        ("bad\udcff", "bad\\udcff"),
        ("\x00\x7f\x9b", "\\x00\\x7f\\x9b"),
        ("line\u2028sep", "line\\u2028sep"),
        ("nbsp\u00a0here", "nbsp here"),
        ("naïve 漢字 🙂", "naïve 漢字 🙂"),
        ("a\tb", "a   b"),
    ],
)
def test_what_could_act_on_a_terminal_is_shown_instead(raw: str, shown: str) -> None:
    assert visible(raw) == shown


@given(ANY_TEXT)
def test_nothing_shown_can_act_on_a_terminal(text: str) -> None:
    for char in visible(text):
        assert char in "\n\u200c\u200d" or unicodedata.category(char) not in {
            *("Cc", "Cf", "Cs", "Zl", "Zp"),
        }
    visible(text).encode()


@given(ANY_TEXT, st.integers(0, 30))
def test_one_line_is_one_line_of_its_limit(text: str, limit: int) -> None:
    line = one_line(text, limit)
    assert len(line.splitlines()) <= 1
    assert limit == 0 or len(line) <= max(limit, 1)


@given(ANY_TEXT)
def test_html_holds_no_markup_of_the_text(text: str) -> None:
    assert not re.search(r"[<>\"']", for_html(text))


@pytest.mark.parametrize(
    ("raw", "shown"),
    [
        ("# no heading", "\\# no heading"),
        ("![x](http://h/i.png)", "!\\[x\\](http://h/i.png)"),
        ("<script>alert(1)</script>", "\\<script\\>alert(1)\\</script\\>"),
        ("*bold* _it_ `code`", "\\*bold\\* \\_it\\_ \\`code\\`"),
        ("1. no list", "1\\. no list"),
        ("- no list", "\\- no list"),
        ("> no quote", "\\> no quote"),
    ],
)
def test_markdown_shows_text_as_it_stands(raw: str, shown: str) -> None:
    assert for_markdown(raw) == shown


@given(ANY_TEXT)
def test_nothing_inside_closes_a_code_block(text: str) -> None:
    lines = code_block(text).split("\n")
    fence = lines[0]
    assert set(fence) == {"`"}
    assert lines[-1] == fence
    assert not any(re.match(f"`{{{len(fence)},}}", line.strip()) for line in lines[1:-1])


@pytest.mark.parametrize("text", ["", "a`b", "``", "`x`", "plain"])
def test_code_span_survives_backticks(text: str) -> None:
    span = code_span(text)
    ticks = re.match("`+", span)
    assert ticks
    assert span.endswith(ticks.group())
    assert text in span
    assert ticks.group() not in re.findall("`+", text)
