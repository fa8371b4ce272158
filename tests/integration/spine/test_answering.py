"""A crash between an answer and the drive that it sets free: no answer is left behind."""

import subprocess
import sys
from typing import Any

import pytest

DEFERS = (
    'if [ -n "$LOOP_ANSWER" ]; then echo "$LOOP_ANSWER" > {0}; exit; fi; '
    "loop defer --reason external --decision-needed {0}"
)


@pytest.fixture
def asking(project: Any) -> Any:
    """A project of which two tasks wait for an answer."""
    project.manifest(*(project.task(one, DEFERS.format(one)) for one in ("T1", "T2")))
    assert project.run().code == 3
    return project


@pytest.mark.parametrize("point", ["database.after_commit:2", "events.after_append:2"])
def test_an_answer_that_a_crash_has_cut_off_is_driven_with_the_next_one(
    asking: Any, point: str
) -> None:
    killed = subprocess.run(
        [sys.executable, "-m", "loopctl", "answer", "T1", "told"],
        cwd=asking.root,
        env={**asking.env, "LOOP_FAILPOINT": point},
        capture_output=True,
        check=False,
        timeout=60,
    )
    assert killed.returncode == -9
    assert asking.status("T1") == "needs-human"
    [left] = [one for one in asking.decisions() if one.answer is None]
    assert left.id == "T2.1"
    assert asking.answer("T2.1", "told too").code == 0
    assert sorted(asking.landed()) == ["T1", "T2"]
    assert asking.on_branch("T1") == "told"
    assert asking.run_statuses() == ["complete"]


def test_a_question_of_an_earlier_run_is_overtaken_when_its_task_is_begun_anew(
    asking: Any,
) -> None:
    assert asking.run("T1").code == 3
    assert {one.id for one in asking.decisions()} == {"T1.2", "T2.1"}
    refused = asking.loop("answer", "T1.1", "told")
    assert refused.code == 2
    assert "T1.1 is asked no more" in refused.err
    assert asking.answer("T1.2", "told").code == 0
    assert asking.landed() == ["T1"]
