"""Tests that are red without a task: they keep it from landing, unless a person lets them be."""

import sys
from typing import Any

import pytest

VERIFY = f"{sys.executable} -m pytest -q -p no:cacheprovider"
WORK = "echo 'ready = True' > work.py"


@pytest.fixture
def red(project: Any) -> Any:
    """A project with a test that is red by itself, and a task that mends the other one."""
    project.write("tests/test_old.py", "def test_old():\n    assert 1 == 2\n")
    project.write(
        "tests/test_new.py",
        "import sys\nsys.path.insert(0, '.')\n\ndef test_new():\n    import work\n"
        "    assert work.ready\n",
    )
    project.manifest(project.task("T1", WORK, verify_cmd=VERIFY))
    project.commit()
    return project


def test_a_result_that_only_old_failures_keep_back_ends_in_a_question(red: Any) -> None:
    assert red.run().code == 3
    (asked,) = red.decisions()
    assert asked.kind == "verify"
    assert "Nothing keeps T1 from landing but 1 test that is red without it" in asked.question
    assert "tests/test_old.py::test_old" in asked.question
    assert asked.options == ("no-new-failures", "strict")
    assert not asked.best_guess
    assert red.landed() == []
    assert red.status("T1") == "needs-human"


def test_the_answer_lets_the_kept_result_land_without_another_step(red: Any) -> None:
    red.run()
    done = red.answer("T1.1", "no-new-failures")
    assert done.code == 0
    assert not done.of("step_started")
    assert red.landed() == ["T1"]
    assert red.on_branch("work.py") == "ready = True"


def test_the_answer_counts_for_a_result_that_is_judged_anew_on_a_moved_head(red: Any) -> None:
    red.run()
    red.manifest(
        red.task("T0", "echo other > other", verify_cmd="true"),
        red.task("T1", WORK, verify_cmd=VERIFY, status="needs-human"),
    )
    red.run("T0")
    assert red.landed() == ["T0"]
    assert red.answer("T1.1", "no-new-failures").code == 0
    assert red.landed() == ["T0", "T1"]


@pytest.mark.slow
def test_strict_goes_on_as_before_and_asks_again(red: Any) -> None:
    red.run()
    done = red.answer("T1.1", "strict")
    assert done.code == 3
    assert done.of("step_started")
    assert red.landed() == []


def test_an_answer_that_is_no_option_is_refused_and_nothing_is_recorded(red: Any) -> None:
    red.run()
    done = red.loop("answer", "T1.1", "sure")
    assert done.code == 2
    assert "no-new-failures or strict" in done.err
    assert [one.answer for one in red.decisions()] == [None]


def test_a_result_that_mends_nothing_is_not_asked_about(red: Any) -> None:
    red.manifest(red.task("T1", "echo 'ready = False' > work.py", verify_cmd=VERIFY))
    red.commit()
    assert red.run().code == 4
    assert red.decisions() == ()


def test_a_command_that_reports_no_single_tests_is_not_asked_about(red: Any) -> None:
    red.manifest(red.task("T1", WORK, verify_cmd="test -e nowhere"))
    red.commit()
    assert red.run().code == 4
    assert red.decisions() == ()
