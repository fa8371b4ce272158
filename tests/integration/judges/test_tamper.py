import shutil
import sys
from typing import Any

import pytest

from loopctl.verdict import Blame, Check, Verdict
from loopctl.verdict import TestCounts as Counts

GREEN = "def total(numbers):\n    return sum(numbers)\n"
BASE = {
    "calc.py": GREEN,
    "tests/conftest.py": "",
    "tests/test_calc.py": """\
        import calc

        def test_sum():
            assert calc.total([1, 2]) == 3

        def test_empty():
            assert calc.total([]) == 0
        """,
    "Makefile": "test:\n\t@$(RUN)\n",
}
SKIPS = "import unittest\ndef total(numbers):\n    raise unittest.SkipTest('later')\n"
FALSE_END = """\
    def pytest_sessionfinish(session):
        session.exitstatus = 0
    """
NO_ITEMS = """\
    def pytest_collection_modifyitems(items):
        items[:] = []
    def pytest_sessionfinish(session):
        session.exitstatus = 0
    """
UNPLUGGED = """\
    def pytest_configure(config):
        config.pluginmanager.unregister(name="loopctl_pytest_report")
    """

# Files of the candidate, with every path in may_edit; part of the reason.
CHEATS = {
    "process ends at once": ({"calc.py": "import os\nos._exit(0)\n"}, "came to its end"),
    "process ends later": (
        {"calc.py": "import atexit, os\natexit.register(os._exit, 0)\ndef total(n): pass\n"},
        "exits 0, yet tests/test_calc.py::test_empty failed",
    ),
    "session ends with 0": (
        {"calc.py": "import pytest\ndef total(n):\n    pytest.exit('x', returncode=0)\n"},
        "never run",
    ),
    "code skips its tests": ({"calc.py": SKIPS}, "2 tests were skipped, 0 at the base"),
    "deleted test": ({"tests/test_calc.py": "def test_sum(): pass\n"}, "1 tests were collected, 2"),
    "skipped test": (
        {
            "tests/test_calc.py": "import pytest\n@pytest.mark.skip\ndef test_sum(): pass\n"
            "def test_empty(): pass\n"
        },
        "1 tests were skipped, 0 at the base",
    ),
    "skipped file": (
        {
            "tests/test_calc.py": "import pytest\npytest.skip('x', allow_module_level=True)\n",
            "tests/test_more.py": "def test_more(): pass\n",
        },
        "1 tests were skipped, 0",
    ),
    "test expected to fail": (
        {
            "tests/test_calc.py": "import pytest\n@pytest.mark.xfail\ndef test_sum(): assert 0\n"
            "def test_empty(): pass\n"
        },
        "1 tests were expected to fail, 0",
    ),
    "exit code rewritten": (
        {"tests/conftest.py": FALSE_END, "calc.py": "def total(numbers): pass\n"},
        "exits 0, yet",
    ),
    "no test collected": ({"tests/conftest.py": NO_ITEMS}, "collected no test"),
    "plugin unregistered": ({"tests/conftest.py": UNPLUGGED}, "without the report"),
    "deselected by configuration": (
        {"pytest.ini": "[pytest]\naddopts = -k sum\n"},
        "1 tests were collected, 2",
    ),
    "pytest shadowed": ({"pytest.py": "import sys\nsys.exit(0)\n"}, "without the report"),
}


JUDGED_BY_A_PERSON = {"deleted test", "skipped test", "skipped file", "test expected to fail"}
"""What a task does to tests that it may edit."""


@pytest.fixture(scope="module")
def steady(shared_bench: Any) -> Any:
    return shared_bench.start(BASE)


def _assert_tampering(result: Any, reason: str) -> None:
    last = result.checks[-1]
    assert (last.check, last.verdict, last.blame) == (
        Check.VERIFY,
        Verdict.FAIL,
        Blame.INTRODUCED,
    ), last
    assert "tampering" in last.reason
    assert reason in last.reason


@pytest.mark.parametrize("name", CHEATS)
def test_cheat_is_caught_though_every_path_may_be_edited(steady: Any, name: str) -> None:
    files, reason = CHEATS[name]
    result = steady.judge(steady.tree(files), steady.pytest, may_edit=("**",))
    if name not in JUDGED_BY_A_PERSON:
        _assert_tampering(result, reason)
        return
    last = result.checks[-1]
    assert result.is_to_be_approved
    assert not result.is_passed
    assert any(reason in hit.words for hit in last.hits)


def test_fewer_assertions_are_for_a_person_and_an_approval_covers_that_loss_alone(
    steady: Any,
) -> None:
    weak = "import calc\n\ndef test_sum():\n    assert calc\n\ndef test_empty():\n    pass\n"
    may = {"may_edit": ("tests/test_calc.py",)}
    result = steady.judge(steady.tree({"tests/test_calc.py": weak}), steady.pytest, **may)
    (hit,) = result.checks[-1].hits
    assert hit.words == "1 assertions in the changed tests, 2 at the base"
    assert result.is_to_be_approved
    known = {**may, "approved": (hit.key,)}
    assert steady.judge(steady.tree({"tests/test_calc.py": weak}), steady.pytest, **known).is_passed
    none = weak.replace("assert calc", "pass")
    again = steady.judge(steady.tree({"tests/test_calc.py": none}), steady.pytest, **known)
    assert again.is_to_be_approved


def test_tests_that_are_edited_and_lose_nothing_need_no_person(steady: Any) -> None:
    moved = {
        "tests/test_calc.py": "import calc\n\ndef test_sum():\n    assert calc.total([1]) == 1\n",
        "tests/test_none.py": "import calc\n\ndef test_empty():\n    assert calc.total([]) == 0\n",
    }
    result = steady.judge(steady.tree(moved), steady.pytest, may_edit=("tests/*",))
    assert result.is_passed
    assert "2 assertions in the changed tests, 2 at the base" in result.checks[-1].reason


@pytest.mark.parametrize(
    "code",
    [
        "import sys\nsys.exit(0)\n",
        "raise KeyboardInterrupt\n",
        "import os\nos.kill(os.getpid(), 9)\n",
    ],
)
def test_code_that_ends_pytest_early_never_lands(steady: Any, code: str) -> None:
    result = steady.judge(steady.tree({"calc.py": code}), steady.pytest)
    assert not result.is_passed


# Commands by which an honest change must pass, with the counts of its pytest.
COMMANDS = {
    "plain": ("{pytest}", Counts(2, 2)),
    "own PYTHONPATH": ("PYTHONPATH=. {pytest}", Counts(2, 2)),
    "quoted PYTHONPATH": ('export PYTHONPATH="."; {pytest}', Counts(2, 2)),
    "own options": ("PYTEST_ADDOPTS='-k sum' {pytest}", Counts(1, 1)),
    "two runs": ("{pytest} -k sum && {pytest} -k empty", Counts(2, 2)),
    "autoload off": ("{pytest} -p no:randomly", Counts(2, 2)),
    "a shell in between": ("sh -c '{pytest}'", Counts(2, 2)),
}


@pytest.mark.parametrize("name", COMMANDS)
def test_honest_change_passes_however_pytest_is_run(steady: Any, name: str) -> None:
    command, counts = COMMANDS[name]
    tree = steady.tree({"calc.py": GREEN + "\n"})
    result = steady.judge(tree, command.format(pytest=steady.pytest))
    assert result.is_passed, result.checks[-1]
    assert result.checks[-1].counts == counts


def test_pytest_that_cannot_load_the_plugin_is_the_environments_fault(steady: Any) -> None:
    command = f"{sys.executable} -I -m pytest -q"
    last = steady.judge(steady.tree({"calc.py": GREEN + "\n"}), command).checks[-1]
    assert (last.verdict, last.blame) == (Verdict.UNKNOWN, Blame.ENVIRONMENT)
    assert "report plugin" in last.reason


def test_pytest_that_never_reports_is_no_tampering_where_the_base_is_alike(steady: Any) -> None:
    command = f"{steady.pytest} --version"
    last = steady.judge(steady.tree({"calc.py": GREEN + "\n"}), command).checks[-1]
    assert (last.verdict, last.blame) == (Verdict.UNKNOWN, Blame.ENVIRONMENT)


def test_pytest_that_a_test_starts_is_not_counted(steady: Any) -> None:
    inner = f"""\
        import subprocess

        def test_inner(tmp_path):
            (tmp_path / "test_x.py").write_text("def test_a(): assert 0\\n")
            command = "{steady.pytest}"
            assert subprocess.run(command.split(), cwd=tmp_path).returncode == 1
        """
    result = steady.judge(steady.tree({"tests/test_inner.py": inner}), steady.pytest)
    assert result.is_passed, result.checks[-1]
    assert result.checks[-1].counts == Counts(3, 3)


def test_file_that_cannot_be_imported_hides_no_other(bench: Any) -> None:
    """A test of a module to come breaks the base's collection; old skips are no news then."""
    bench.start(
        {
            "tests/test_new.py": "import new\n\ndef test_new():\n    assert new\n",
            "tests/test_old.py": "import pytest\n@pytest.mark.skip\ndef test_old(): pass\n",
        }
    )
    result = bench.judge(bench.tree({"new.py": ""}), bench.pytest)
    assert result.is_passed, result.checks[-1]
    assert result.checks[-1].base_counts == Counts(collected=2, failed=1, skipped=1)


@pytest.mark.skipif(shutil.which("make") is None, reason="make is not installed")
def test_pytest_below_make_is_counted_and_must_stay(bench: Any) -> None:
    recipe = f"test:\n\t@{bench.pytest}\n"
    bench.start({**BASE, "Makefile": recipe})
    honest = bench.judge(bench.tree({"calc.py": GREEN + "\n"}), "make test")
    assert honest.is_passed
    assert honest.checks[-1].counts == Counts(2, 2)
    tree = bench.tree({"Makefile": "test:\n\t@true\n"})
    cheat = bench.judge(tree, "make test", may_edit=("Makefile",))
    _assert_tampering(cheat, "these left none")


@pytest.mark.skipif(shutil.which("make") is None, reason="make is not installed")
def test_make_that_sets_pythonpath_is_judged_by_its_exit_code(bench: Any) -> None:
    bench.start({**BASE, "Makefile": f"test:\n\t@PYTHONPATH=. {bench.pytest}\n"})
    result = bench.judge(bench.tree({"calc.py": GREEN + "\n"}), "make test")
    assert result.is_passed, result.checks[-1]
    assert result.checks[-1].counts is None


def test_setup_that_rewrites_a_test_is_caught(bench: Any) -> None:
    bench.start({**BASE, "setup.sh": "true\n"})
    gate = bench.gate(setup_cmd="sh setup.sh")
    cheat = {"setup.sh": "echo 'def test_sum(): pass' > tests/test_calc.py\n"}
    _assert_tampering(bench.judge(bench.tree(cheat), bench.pytest, gate=gate), "rewritten")
    honest = {"setup.sh": "echo built > built.txt; mkdir -p x.egg-info; echo > x.egg-info/y\n"}
    assert bench.judge(bench.tree(honest), bench.pytest, gate=gate).is_passed


def test_report_put_in_the_place_of_ours_is_not_believed(steady: Any) -> None:
    forged = """\
        import atexit, json, os, sys
        plugin = sys.modules["loopctl_pytest_report"]
        path = plugin._HELD["LOOP_TEST_REPORT"]
        os.mkfifo(path + ".x")
        os.replace(path + ".x", path)
        os._exit(0)
        """
    _assert_tampering(steady.judge(steady.tree({"calc.py": forged}), steady.pytest), "report")


RED = {**BASE, "calc.py": "def total(numbers):\n    return 0\n"}
FORGED = """\
def make(cls, item, call):
    report = made(cls, item, call)
    report.outcome, report.longrepr = "passed", None
    return report
r.TestReport.from_item_and_call = classmethod(make)
"""
REPLACED = {
    "runs of tests": (
        "import _pytest.python\n_pytest.python.Function.runtest = lambda self: None\n",
        "_pytest.python.Function.runtest",
    ),
    "reports": (
        "import _pytest.reports as r\nmade = r.TestReport.from_item_and_call.__func__\n" + FORGED,
        "_pytest.reports.TestReport.from_item_and_call",
    ),
    "what a function does": (
        "import _pytest.python as p\np.Function.runtest.__code__ = (lambda self: None).__code__\n",
        "_pytest.python.Function.runtest",
    ),
    "a builtin": (
        "import builtins\nbuiltins.AssertionError = type('A', (AssertionError,), {})\n",
        "builtins.AssertionError",
    ),
}


@pytest.fixture(scope="module")
def red(shared_bench_of_red_tests: Any) -> Any:
    return shared_bench_of_red_tests.start(RED)


@pytest.mark.parametrize("name", REPLACED)
@pytest.mark.parametrize("options", ["", " -n 1"])
def test_code_that_replaces_what_judges_it_never_lands(red: Any, name: str, options: str) -> None:
    code, part = REPLACED[name]
    # A worker of a distributed run tells its controller.
    command = f"{red.pytest} -p xdist{options}" if options else red.pytest
    tree = red.tree({"calc.py": f"{code}\ndef total(numbers):\n    return sum(numbers)\n"})
    _assert_tampering(red.judge(tree, command), f"replaces {part}")


def test_what_the_base_replaces_as_well_is_no_tampering(bench: Any) -> None:
    plugin = "import _pytest.python\n_pytest.python.Function.runtest.__doc__ = ''\n"
    plugin += "made = _pytest.python.Function.setup\n"
    plugin += "_pytest.python.Function.setup = lambda self: made(self)\n"
    bench.start({**RED, "tests/conftest.py": plugin})
    result = bench.judge(bench.tree({"calc.py": GREEN}), bench.pytest)
    assert result.is_passed, result.checks[-1]
    assert result.checks[-1].replaced == ("_pytest.python.Function.setup",)


FAKE = "import sys, types\nfake = types.ModuleType('calc')\nfake.total = sum\n"
CARRYING = {
    "tests/calc.py": GREEN,
    "tests/calc/__init__.py": GREEN,
    "tests/test_aaa.py": f"{FAKE}sys.modules['calc'] = fake\ndef test_a(): pass\n",
    "tests/test_abc.py": "import calc\ncalc.total = sum\ndef test_a(): pass\n",
}


@pytest.mark.parametrize("path", CARRYING)
def test_result_that_a_new_file_among_the_tests_carries_never_lands(red: Any, path: str) -> None:
    files = {path: CARRYING[path], "README.md": "worked\n"}
    _assert_tampering(red.judge(red.tree(files), red.pytest), f"passes only with {path}")


def test_new_tests_beside_an_honest_change_land_with_it(red: Any) -> None:
    more = "import calc\n\ndef test_more():\n    assert calc.total([4]) == 4\n"
    result = red.judge(red.tree({"calc.py": GREEN, "tests/test_more.py": more}), red.pytest)
    assert result.is_passed, result.checks[-1]
    assert result.checks[-1].counts == Counts(3, 3)


def test_first_tests_of_a_project_and_those_that_verify_names_are_the_work_itself(
    bench: Any,
) -> None:
    bench.start({"calc.py": GREEN})
    files = {"tests/test_calc.py": BASE["tests/test_calc.py"]}
    assert bench.judge(bench.tree(files), bench.pytest).is_passed
    bench.start(BASE)
    files = {"tests/test_new.py": "def test_new():\n    pass\n"}
    named = f"{bench.pytest} tests/test_new.py"
    assert bench.judge(bench.tree(files), named).is_passed


def test_test_that_is_gone_is_for_a_person_though_another_came_in_its_place(steady: Any) -> None:
    files = {"tests/test_calc.py": BASE["tests/test_calc.py"].replace("test_sum", "test_other")}
    result = steady.judge(steady.tree(files), steady.pytest, may_edit=("tests/*",))
    assert result.is_to_be_approved
    assert [hit.words for hit in result.checks[-1].hits] == [
        "the test test_sum of the base is gone"
    ]


@pytest.mark.parametrize(
    "weak",
    ["calc.total([1, 2]) == 3 or True", "True", "'no'", "calc == calc", "not 0", "(calc, 'x')"],
)
def test_assertion_that_always_holds_is_none(steady: Any, weak: str) -> None:
    strong = BASE["tests/test_calc.py"]
    files = {"tests/test_calc.py": strong.replace("calc.total([1, 2]) == 3", weak)}
    result = steady.judge(steady.tree(files), steady.pytest, may_edit=("tests/*",))
    assert result.is_to_be_approved
    (hit,) = result.checks[-1].hits
    assert hit.words == "1 assertions in the changed tests, 2 at the base"
