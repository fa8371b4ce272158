"""The tests of one candidate on the files of another, by real git and real test runners."""

import sys
from pathlib import Path
from typing import Any

import pytest

from loopctl.crossing import Difference, Entrant
from loopctl.domain import Kind, Task, TaskId
from loopctl.errors import CancelledError
from loopctl.judges.cross import CrossJudge
from loopctl.settings import GateSettings

KEEPS = "def split(text):\n    return text.split(',')\n"
DROPS = "def split(text):\n    return [one for one in text.split(',') if one]\n"
OTHER = "def cells(text):\n    return text.split(',')\n"
KEEPS_TEST = "import csvs\n\ndef test_empty():\n    assert csvs.split('a,,b') == ['a', '', 'b']\n"
DROPS_TEST = "import csvs\n\ndef test_empty():\n    assert csvs.split('a,,b') == ['a', 'b']\n"
UNIT = """
    import unittest, csvs
    class Split(unittest.TestCase):
        def test_empty(self):
            self.assertEqual(csvs.split('a,,b'), {expected})
"""


@pytest.fixture
def csvs(bench: Any) -> Any:
    return bench.start({"tests/test_one.py": "def test_one():\n    pass\n", "csvs.py": ""})


def judge(bench: Any, *, setup_cmd: str = "") -> CrossJudge:
    return CrossJudge(bench.repository, GateSettings(timeout_s=60), setup_cmd)


def task(verify_cmd: str | None, kind: Kind = Kind.CODE) -> Task:
    return Task(TaskId("T1"), "title", verify_cmd=verify_cmd, kind=kind)


def entrants(bench: Any, one: dict[str, str], other: dict[str, str]) -> tuple[Entrant, Entrant]:
    return (
        Entrant("one", bench.base, bench.tree(one)),
        Entrant("other", bench.base, bench.tree(other)),
    )


def compare(
    bench: Any, one: dict[str, str], other: dict[str, str], command: str | None = None, **how: Any
) -> tuple[Difference, ...]:
    of = task(command or bench.pytest)
    found = judge(bench, **how).differences(of, *entrants(bench, one, other))
    assert bench.checkouts() == []
    return found


def test_a_test_of_one_that_fails_on_the_other_is_a_difference_with_its_error(csvs: Any) -> None:
    one = {"csvs.py": KEEPS, "tests/test_split.py": KEEPS_TEST}
    (found,) = compare(csvs, one, {"csvs.py": DROPS})
    assert (found.tests_of, found.files_of) == ("one", "other")
    (line,) = found.found
    assert line.startswith("tests/test_split.py::test_empty: ")
    assert "assert ['a', 'b'] == ['a', '', 'b']" in line


def test_it_is_looked_for_both_ways_in_files_of_one_name_too(csvs: Any) -> None:
    one = {"csvs.py": KEEPS, "tests/test_split.py": KEEPS_TEST}
    other = {"csvs.py": DROPS, "tests/test_split.py": DROPS_TEST}
    found = compare(csvs, one, other)
    assert [(each.tests_of, each.files_of) for each in found] == [
        ("one", "other"),
        ("other", "one"),
    ]


@pytest.mark.parametrize(
    "other",
    [
        {"csvs.py": KEEPS + "\n\nMORE = 1\n", "tests/test_more.py": KEEPS_TEST},
        {"csvs.py": f"'''Splits.'''\n{KEEPS}"},
        {"csvs.py": KEEPS, "tests/test_split.py": KEEPS_TEST},
    ],
)
def test_what_does_the_same_has_none(csvs: Any, other: dict[str, str]) -> None:
    one = {"csvs.py": KEEPS, "tests/test_split.py": KEEPS_TEST}
    assert compare(csvs, one, other) == ()


@pytest.mark.parametrize(
    "other",
    [
        {"csvs.py": OTHER},
        {"cells.py": OTHER, "csvs.py": "import cells\n"},
        {"csvs.py": "def split(text, by):\n    return text.split(by)\n"},
        {"csvs.py": "from csvs import nothing\n"},
    ],
)
def test_a_name_that_only_one_of_them_has_is_no_demand(csvs: Any, other: dict[str, str]) -> None:
    one = {"csvs.py": KEEPS, "tests/test_split.py": KEEPS_TEST}
    assert compare(csvs, one, other) == ()


def test_a_test_that_fails_beside_those_of_the_candidate_is_none_of_its_demands(
    bench: Any,
) -> None:
    bench.start({"tests/test_flag.py": "import csvs\ndef test_flag():\n    assert csvs.FLAG\n"})
    one = {"csvs.py": f"FLAG = 1\n{KEEPS}", "tests/test_split.py": KEEPS_TEST}
    assert compare(bench, one, {"csvs.py": f"FLAG = 0\n{KEEPS}"}) == ()


def test_a_test_that_fails_once_only_is_no_demand(csvs: Any, tmp_path: Path) -> None:
    seen = tmp_path / "seen"
    once = f"import os\ndef test_once():\n    known = os.path.exists('{seen}')\n"
    once += f"    open('{seen}', 'w').close()\n    assert known\n"
    assert compare(csvs, {"tests/test_once.py": once}, {"csvs.py": KEEPS}) == ()
    assert seen.exists()


def test_unittest_names_the_test_and_its_error(csvs: Any) -> None:
    command = f"{sys.executable} -m unittest discover -s tests -t ."
    packages = {"tests/__init__.py": ""}
    one = {"csvs.py": KEEPS, "tests/test_split.py": UNIT.format(expected=["a", "", "b"])}
    (found,) = compare(csvs, {**packages, **one}, {**packages, "csvs.py": DROPS}, command)
    (line,) = found.found
    assert line.startswith("tests.test_split.Split.test_empty: AssertionError: Lists differ")


def test_without_a_report_the_end_of_the_output_is_what_there_is(bench: Any) -> None:
    bench.start({"all.sh": "for one in test_*.sh; do sh $one || exit 1; done\n", "test_0.sh": ""})
    check = {"word": "good\n", "test_word.sh": "grep -q good word || { echo 'not good'; exit 1; }"}
    (found,) = compare(bench, check, {"word": "bad\n"}, "sh all.sh")
    assert found.found == ("not good",)
    (silent,) = compare(bench, {**check, "test_word.sh": "grep -q good word"}, {"word": "bad\n"}, "sh all.sh")  # fmt: skip
    assert silent.found == ("exit 1",)
    missing = {**check, "test_word.sh": "cat word"}
    assert compare(bench, missing, {"words": "good\n"}, "sh all.sh") == ()


def test_the_tests_come_with_the_files_of_their_folder(csvs: Any) -> None:
    reads = "import csvs\n\ndef test_file():\n"
    reads += "    assert csvs.split(open('tests/data/a.csv').read()) == ['a', '', 'b']\n"
    one = {"csvs.py": KEEPS, "tests/test_file.py": reads, "tests/data/a.csv": "a,,b"}
    assert len(compare(csvs, one, {"csvs.py": DROPS})) == 1


def test_a_folder_in_the_place_of_a_file_is_no_obstacle(csvs: Any) -> None:
    one = {"csvs.py": KEEPS, "tests/test_split/test_it.py": KEEPS_TEST}
    assert len(compare(csvs, one, {"csvs.py": DROPS, "tests/test_split": "a file"})) == 1


def test_without_anything_to_compare_by_nothing_is_run(csvs: Any) -> None:
    assert compare(csvs, {"csvs.py": KEEPS}, {"csvs.py": DROPS}, "touch ran; false") == ()
    pair = entrants(csvs, {"tests/test_split.py": KEEPS_TEST}, {"csvs.py": DROPS})
    for nothing in (task(None), task("  "), task(csvs.pytest, Kind.DOC)):
        assert judge(csvs).differences(nothing, *pair) == ()


def test_where_the_machine_is_at_fault_they_are_as_good_as_each_other(csvs: Any) -> None:
    one = {"csvs.py": KEEPS, "tests/test_split.py": KEEPS_TEST}
    assert compare(csvs, one, {"csvs.py": DROPS}, setup_cmd="exit 1") == ()
    assert compare(csvs, one, {"csvs.py": DROPS}, "no-such-program") == ()


def test_a_set_up_has_run_before(csvs: Any) -> None:
    one = {"csvs.py": KEEPS, "tests/test_split.py": KEEPS_TEST}
    command = f"test -e made && {csvs.pytest}"
    assert len(compare(csvs, one, {"csvs.py": DROPS}, command, setup_cmd="touch made")) == 1


def test_asked_to_stop_it_stops(csvs: Any) -> None:
    one = {"csvs.py": KEEPS, "tests/test_split.py": KEEPS_TEST}
    pair = entrants(csvs, one, {"csvs.py": DROPS})
    csvs.cancel.set()
    with pytest.raises(CancelledError):
        judge(csvs).differences(task(csvs.pytest), *pair)
    csvs.cancel.clear()
    assert csvs.checkouts() == []


def test_a_check_of_the_goal_is_met_or_not_or_nobody_can_tell(csvs: Any) -> None:
    one, _ = entrants(csvs, {"word": "good\n"}, {})
    assert judge(csvs).meets("grep -q good word", one) is True
    assert judge(csvs).meets("grep -q bad word", one) is False
    assert judge(csvs).meets("no-such-program", one) is None
    assert judge(csvs, setup_cmd="exit 1").meets("grep -q good word", one) is None


@pytest.mark.parametrize("option", ["", "--tb=no", "--tb=native", "--tb=line", "--tb=short"])
def test_the_error_is_known_however_pytest_shows_it(csvs: Any, option: str) -> None:
    one = {"csvs.py": KEEPS, "tests/test_split.py": KEEPS_TEST}
    (found,) = compare(csvs, one, {"csvs.py": DROPS}, f"{csvs.pytest} {option}")
    assert "assert ['a', 'b'] ==" in found.found[0]
