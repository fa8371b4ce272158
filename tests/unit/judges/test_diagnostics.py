import pytest
from hypothesis import given
from hypothesis import strategies as st

from loopctl.judges.diagnostics import findings, normalised

LINES = {
    "mypy": ("a/b.py:3: error: Bad thing  [bad-thing]", "a/b.py: bad-thing: Bad thing"),
    "mypy column": ("a.py:3:5: error: Bad  [misc]", "a.py: misc: Bad"),
    "mypy end": ("a.py:3:5:3:9: error: Bad  [misc]", "a.py: misc: Bad"),
    "mypy brackets": ('a.py:3: error: Need "list[int]"  [x]', 'a.py: x: Need "list[int]"'),
    "mypy other line": (
        'a.py:9: error: Name "x" already defined on line 3  [no-redef]',
        'a.py: no-redef: Name "x" already defined on line N',
    ),
    "mypy no place": ("a.py: error: Duplicate module", "a.py: : Duplicate module"),
    "ty": ("a.py:3:5: error[invalid-x] Bad thing", "a.py: invalid-x: Bad thing"),
    "pyright": (
        "  /home/u/a.py:3:5 - error: Bad thing (reportBad)",
        "a.py: reportBad: Bad thing",
    ),
    "pyright no rule": ("  /home/u/a.py:3:5 - error: Bad thing", "a.py: : Bad thing"),
    "tsc": ("src/a.ts(3,5): error TS2322: Bad thing", "src/a.ts: TS2322: Bad thing"),
    "tsc group": ("src/(a)/b.ts(3,5): error TS1: Bad", "src/(a)/b.ts: TS1: Bad"),
    "brackets in a name": ("a (1).py:3: error: Bad  [x]", "a (1).py: x: Bad"),
    "tsc no place": ("error TS18003: No inputs", ": TS18003: No inputs"),
    "cargo": ("src/a.rs:3:5: error[E0308]: mismatched", "src/a.rs: E0308: mismatched"),
    "cargo no code": ("src/a.rs:3:5: error: expected one", "src/a.rs: : expected one"),
    "go vet": ("./a.go:3:5: unreachable code", "a.go: : unreachable code"),
    "go vet type": ("vet: ./a.go:3:5: undefined: x", "a.go: : undefined: x"),
}


@pytest.mark.parametrize("name", LINES)
def test_error_line_of_a_checker_is_read_without_its_numbers(name: str) -> None:
    line, expected = LINES[name]
    assert findings(f"noise\n{line}\nmore noise\n".encode(), "/home/u") == (expected,)


@pytest.mark.parametrize(
    "line",
    [
        "a.py:3: note: See there",
        "Found 3 errors in 1 file",
        "a.py:3:5: warning[x] Bad",
        "  /home/u/a.py:3:5 - warning: Bad (reportBad)",
        "src/a.rs:3:5: warning: unused",
        "error: could not compile `x` (bin) due to 1 previous error",
        "# example.com/pkg",
        "",
    ],
)
def test_line_that_is_no_error_is_passed_over(line: str) -> None:
    assert findings(line.encode()) == ()


def test_equal_errors_are_kept_as_often_as_they_stand() -> None:
    line = "a.py:%d: error: Bad  [x]\n"
    assert findings((line % 1 + line % 2).encode()) == ("a.py: x: Bad",) * 2


def test_outputs_that_differ_in_numbers_order_and_place_are_equal() -> None:
    first = normalised(b"b 3\n/one/a took 1.5 s\n", "/one")
    assert first == normalised(b"/two/a took 22 s\nb 4", "/two")
    assert first != normalised(b"/two/c took 22 s\nb 4", "/two")


def test_lines_beyond_any_length_are_compared_to_their_end() -> None:
    start = b"x" * 100_000
    first = normalised(start + b" /one/a 3\n", "/one")
    assert first == normalised(start + b" /two/a 4\n", "/two")
    assert first != normalised(start + b" /two/b 4\n", "/two")


@given(st.text())
def test_no_output_breaks_the_readers(text: str) -> None:
    findings(text.encode(errors="replace"), "/home/u")
    normalised(text.encode(errors="replace"), "/home/u")
