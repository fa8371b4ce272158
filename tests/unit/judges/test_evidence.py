from dataclasses import replace

from hypothesis import given
from hypothesis import strategies as st

from loopctl.domain import Blame, Check, CheckResult, GateResult, Sha, Verdict
from loopctl.domain import TestCounts as Counts
from loopctl.judges.evidence import observation, printable, shown, tail

FAILED = CheckResult(
    check=Check.VERIFY,
    verdict=Verdict.FAIL,
    blame=Blame.INTRODUCED,
    reason="1 test failed",
    command="pytest -q",
    exit=1,
    tail="E assert 0",
    counts=Counts(2, 1, 1),
    base_counts=Counts(2, 2),
    findings=("test_a.py::test_a",),
)


def test_observation_says_what_failed_and_whose_fault_it_is() -> None:
    text = observation(GateResult(Sha("h"), "t", (FAILED,)))
    assert text == (
        "The gate stopped at verify: 1 test failed\n"
        "command: pytest -q\n"
        "exit: 1\n"
        "blame: introduced (this change introduced it: the base does not have it)\n"
        "tests: 2 collected, 1 passed, 1 failed, 0 skipped, 0 xfailed\n"
        "tests at the base: 2 collected, 2 passed, 0 failed, 0 skipped, 0 xfailed\n"
        "red:\n  test_a.py::test_a\n"
        "output:\nE assert 0"
    )


def test_observation_of_a_pass_is_empty() -> None:
    passed = replace(FAILED, verdict=Verdict.PASS, blame=None)
    assert observation(GateResult(Sha("h"), "t", (passed,))) == ""


def test_short_output_is_kept_whole() -> None:
    assert tail(b"one\r\ntwo\n") == "one\ntwo"


def test_long_output_keeps_its_end_in_whole_lines() -> None:
    text = tail(b"".join(b"line %d\n" % number for number in range(2000)), 100)
    first, *lines = text.split("\n")
    assert "bytes left out" in first
    assert lines[-1] == "line 1999"
    assert all(line.startswith("line ") for line in lines)


def test_one_endless_line_keeps_its_end() -> None:
    assert tail(b"a" * 9000 + b"end", 100).endswith("aend")


def test_terminal_sequences_are_taken_out() -> None:
    said = "\x1b[31mred\x1b[0m \x1b]0;title\x07x \x1b]52;c;QQ==\x1b\\y \x1bPq\x1b\\z \x9b1mc"
    assert printable(said) == "red x y z <U+009B>1mc"


def test_invisible_characters_are_spelt_out() -> None:
    assert printable("a\u202eb\u200bc\x00\ud800") == "a<U+202E>b<U+200B>c<U+0000><U+D800>"
    assert shown("a\nb\tc") == "a\\nb\\tc"


@given(st.binary(max_size=300), st.integers(min_value=8, max_value=100))
def test_tail_is_bounded_and_printable_whatever_it_is_given(output: bytes, limit: int) -> None:
    text = tail(output, limit)
    text.encode("utf-8")
    assert len(text.encode()) <= limit + 40
    assert "\x1b" not in text
    assert not any(ord(char) < 32 and char not in "\n\t" for char in text)
