"""Faults planted in texts."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from loopctl.judges.mutation import mutants


@pytest.mark.parametrize(
    ("line", "now"),
    [
        ("if a == b:", "if a != b:"),
        ("if (a !== b) {", "if (a !== b) {"),
        ("return a <= b", "return a > b"),
        ("return a >= b", "return a < b"),
        ("return a < b", "return a >= b"),
        ("def f() -> int: return total + rest", "def f() -> int: return total - rest"),
        ("fn f() -> bool { x >= 3 }", "fn f() -> bool { x < 3 }"),
        ("ok = True", "ok = False"),
        ("if a && b {", "if a || b {"),
        ("limit = 10", "limit = 11"),
        ('name = "Ada"', 'name = "Ada~"'),
    ],
)
def test_a_line_is_turned_round_at_its_first_place(line: str, now: str) -> None:
    found = [mutant.now for mutant in mutants("a.py", line.encode())]
    assert found == ([now] if now != line else [""])


def test_remarks_imports_and_blank_lines_are_left_alone() -> None:
    text = b"import os\n# a == b\n\n// 3\nx = 1\n"
    (mutant,) = mutants("a", text)
    assert (mutant.line, mutant.content) == (5, b"import os\n# a == b\n\n// 3\nx = 2\n")


def test_only_the_lines_that_may_be_changed_are() -> None:
    text = b"a = 1\r\nb = 2\r\n"
    (mutant,) = mutants("a", text, frozenset({2}))
    assert mutant.content == b"a = 1\r\nb = 3\r\n"


def test_where_no_line_can_be_turned_round_each_can_be_taken_out() -> None:
    found = [mutant.content for mutant in mutants("README", b"one\n\ntwo\n")]
    assert found == [b"\ntwo\n", b"one\n\n"]


def test_what_is_no_text_has_no_mutants() -> None:
    assert list(mutants("a.png", b"\x89PNG\xff 1 == 1")) == []


@given(st.text(alphabet=st.sampled_from("ab =!<>+-*&|01\"'\n\r\t#TrueFalse"), max_size=200))
def test_each_mutant_differs_in_its_own_line_alone(text: str) -> None:
    lines = text.splitlines(keepends=True)
    for mutant in mutants("a", text.encode()):
        now = mutant.content.decode()
        before = "".join(lines[: mutant.line - 1])
        after = "".join(lines[mutant.line :])
        assert now.startswith(before)
        assert now.endswith(after)
        assert now != text
