"""What a run's output names as failed."""

import pytest

from loopctl.sources.failures import read_failures

CASES = [
    ("FAILED tests/test_a.py::test_b[x] - assert 1 == 2", "tests/test_a.py::test_b[x]"),
    ("ERROR tests/test_a.py", "tests/test_a.py"),
    ("FAIL: test_b (tests.test_a.A.test_b)", "test_b (tests.test_a.A.test_b)"),
    ("not ok 2 - adds two numbers", "adds two numbers"),
    ("\x1b[31m\u2716 adds two numbers (1.23ms)\x1b[39m", "adds two numbers"),
    ("  \u25cf sums \u203a adds", "sums \u203a adds"),
    ("test sums::adds ... FAILED", "sums::adds"),
    ("--- FAIL: TestAdd (0.00s)", "TestAdd"),
]


@pytest.mark.parametrize(("line", "name"), CASES)
def test_each_runner_names_its_failed_test(line: str, name: str) -> None:
    assert read_failures(f"something\n{line}\n1 failed").tests == (name,)


def test_the_same_failure_at_another_line_has_the_same_signature() -> None:
    one = "FAILED t.py::a - x\nE   ValueError: at /tmp/one/t.py:12 line 3, <A at 0x7f00>\n"
    two = "FAILED t.py::a - x\nE   ValueError: at /var/two/t.py:99 line 8, <A at 0x1234>\n"
    assert read_failures(one).signature == read_failures(two).signature != ""


def test_another_error_or_another_test_has_another_signature() -> None:
    texts = (
        "FAILED t.py::a\nE   KeyError: 1",
        "FAILED t.py::a\nE   ValueError: 1",
        "FAILED t.py::b\nE   KeyError: 1",
    )
    assert len({read_failures(text).signature for text in texts}) == len(texts)


def test_output_of_no_known_runner_has_no_signature() -> None:
    assert read_failures("all went well\nnot ok 1 - later # TODO").signature == ""
