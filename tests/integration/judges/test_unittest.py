"""What a unittest that ends well has tested: its own report counts, not what it prints or exits with."""

import shutil
import sys
from typing import Any

import pytest

from loopctl.verdict import Blame, Check, Verdict
from loopctl.verdict import TestCounts as Counts

UNITTEST = f"{sys.executable} -B -m unittest"
GREEN = "def total(numbers):\n    return sum(numbers)\n"
TESTS = """\
    import unittest

    import calc


    class T(unittest.TestCase):
        def test_empty(self):
            self.assertEqual(calc.total([]), 0)

        def test_parts(self):
            for numbers in ([1, 2], [3]):
                with self.subTest(numbers=numbers):
                    self.assertEqual(calc.total(numbers), 3)


    if __name__ == "__main__":
        unittest.main()
    """
OWN_RUNNER = 'import unittest as u; u.TextTestRunner().run(u.defaultTestLoader.discover("."))'
BROKEN = "def total(numbers):\n    return 0\n"
SAID = "print('..\\nRan 2 tests in 0.001s\\n\\nOK', flush=True)\n"

# Files of the candidate; part of the reason.
CHEATS = {
    "process ends at once": ("import os\n" + SAID + "os._exit(0)\n", "came to its end"),
    "process ends in a test": (
        "import os\ndef total(n):\n    os._exit(0)\n",
        "came to its end",
    ),
    "import ends it": ("raise SystemExit(0)\n", "came to its end"),
    "process ends later": (
        "import atexit, os\natexit.register(os._exit, 0)\n" + BROKEN,
        "exits 0, yet test_calc.T.test_parts failed",
    ),
    "result lies": (
        "import unittest\nunittest.TestResult.wasSuccessful = lambda self: True\n" + BROKEN,
        "exits 0, yet test_calc.T.test_parts failed",
    ),
    "assertion replaced": (
        "import unittest\nunittest.TestCase.assertEqual = lambda *args: None\n" + BROKEN,
        "replaces unittest.case.TestCase.assertEqual",
    ),
    "code skips its tests": (
        "import unittest\ndef total(n):\n    raise unittest.SkipTest('later')\n",
        "2 tests were skipped, 0 at the base",
    ),
    "child ends it": (
        "import os\nif os.fork() == 0:\n    os._exit(0)\nos.wait()\nos._exit(0)\n",
        "came to its end",
    ),
}


@pytest.fixture(scope="module")
def calc(shared_bench: Any) -> Any:
    return shared_bench.start({"calc.py": GREEN, "test_calc.py": TESTS})


def _refused(result: Any, reason: str) -> None:
    last = result.checks[-1]
    assert (last.check, last.verdict, last.blame) == (
        Check.VERIFY,
        Verdict.FAIL,
        Blame.INTRODUCED,
    ), last
    assert reason in last.reason


# From the root by name, so that an import that ends the process is no broken test.
@pytest.mark.parametrize("name", CHEATS)
def test_code_that_ends_the_tests_early_or_hides_a_failure_never_lands(
    calc: Any, name: str
) -> None:
    text, reason = CHEATS[name]
    _refused(calc.judge(calc.tree({"calc.py": text}), f"{UNITTEST} test_calc"), reason)


@pytest.mark.parametrize(
    ("command", "counts"),
    [
        (UNITTEST, Counts(2, 2)),
        (f"{UNITTEST} discover -p '*test*.py'", Counts(2, 2)),
        (f"{UNITTEST} test_calc.T.test_parts", Counts(1, 1)),
        (f"{UNITTEST} test_calc && {UNITTEST} test_calc", Counts(4, 4)),
        (f"PYTHONPATH=. {UNITTEST} -q", Counts(2, 2)),
        (f"{sys.executable} -B test_calc.py", Counts(2, 2)),
        (
            f"{sys.executable} -c '{OWN_RUNNER}'",
            Counts(2, 2),
        ),
    ],
)
def test_an_honest_change_passes_however_unittest_is_run(
    calc: Any, command: str, counts: Counts
) -> None:
    result = calc.judge(calc.tree({"calc.py": GREEN + "\n"}), command)
    assert result.is_passed, result.checks[-1]
    assert result.checks[-1].counts == counts


def test_a_red_base_lands_only_the_right_mending(bench: Any) -> None:
    bench.start({"calc.py": BROKEN, "test_calc.py": TESTS})
    for text, _ in CHEATS.values():
        assert not bench.judge(bench.tree({"calc.py": text}), UNITTEST).is_passed
    wrong = bench.judge(bench.tree({"calc.py": "def total(numbers):\n    return 3\n"}), UNITTEST)
    assert wrong.checks[-1].findings == ("test_calc.T.test_empty",)
    assert bench.judge(bench.tree({"calc.py": GREEN}), UNITTEST).is_passed


def test_a_unittest_of_the_project_in_the_place_of_pythons_is_no_pass(calc: Any) -> None:
    tree = calc.tree({"unittest.py": "", "calc.py": BROKEN})
    _refused(calc.judge(tree, UNITTEST), "without the report")


def test_a_unittest_that_cannot_report_is_the_environments_fault(calc: Any) -> None:
    command = f"cd . && {sys.executable} -E -m unittest test_calc"
    last = calc.judge(calc.tree({"calc.py": GREEN + "\n"}), command).checks[-1]
    assert (last.verdict, last.blame) == (Verdict.UNKNOWN, Blame.ENVIRONMENT)
    assert "without -I, -E and -S" in last.reason


@pytest.mark.skipif(shutil.which("make") is None, reason="make is not installed")
def test_unittest_below_make_is_counted_and_must_stay(bench: Any) -> None:
    bench.start({"calc.py": GREEN, "test_calc.py": TESTS, "Makefile": f"test:\n\t@{UNITTEST}\n"})
    honest = bench.judge(bench.tree({"calc.py": GREEN + "\n"}), "make test")
    assert honest.checks[-1].counts == Counts(2, 2)
    tree = bench.tree({"Makefile": "test:\n\t@true\n"})
    _refused(bench.judge(tree, "make test", may_edit=("Makefile",)), "these left none")


def test_a_unittest_that_a_test_starts_is_not_counted(bench: Any) -> None:
    inner = f"""\
        import io, subprocess, unittest

        class Inner(unittest.TestCase):
            def test_red(self):
                self.fail()

        def load_tests(loader, tests, pattern):
            return loader.loadTestsFromTestCase(Outer)

        class Outer(unittest.TestCase):
            def test_inner(self):
                suite = unittest.defaultTestLoader.loadTestsFromTestCase(Inner)
                self.assertFalse(unittest.TextTestRunner(stream=io.StringIO()).run(suite).wasSuccessful())
                command = "{UNITTEST} test_inner.Inner"
                self.assertEqual(subprocess.run(command.split(), capture_output=True).returncode, 1)
        """
    bench.start({"test_inner.py": inner, "x.py": ""})
    result = bench.judge(bench.tree({"x.py": "x = 1\n"}), UNITTEST)
    assert result.is_passed, result.checks[-1]
    assert result.checks[-1].counts == Counts(1, 1)


def test_skips_failures_and_whole_classes_are_each_counted_once(bench: Any) -> None:
    kinds = """\
        import unittest

        class T(unittest.TestCase):
            def test_parts(self):
                for number in range(3):
                    with self.subTest(number=number):
                        self.fail()
            @unittest.skip("later")
            def test_skipped(self): ...
            @unittest.expectedFailure
            def test_expected(self): self.fail()
            @unittest.expectedFailure
            def test_unexpected(self): ...
            def test_good(self): ...

        class Broken(unittest.TestCase):
            @classmethod
            def setUpClass(cls):
                raise OSError
            def test_never(self): ...
        """
    bench.start({"test_kinds.py": kinds, "x.py": ""})
    last = bench.judge(bench.tree({"x.py": "x = 1\n"}), UNITTEST).checks[-1]
    assert last.counts == Counts(collected=6, passed=1, failed=3, skipped=1, xfailed=1)
    assert last.findings == (
        "setUpClass (test_kinds.Broken)",
        "test_kinds.T.test_parts",
        "test_kinds.T.test_unexpected",
    )


def test_a_sitecustomize_of_the_commands_own_is_still_run(bench: Any) -> None:
    bench.start({"own/sitecustomize.py": "import builtins\nbuiltins.OWN = 1\n", "x.py": ""})
    command = f"PYTHONPATH=own {sys.executable} -c 'OWN'"
    assert bench.judge(bench.tree({"x.py": "x = 1\n"}), command).is_passed
