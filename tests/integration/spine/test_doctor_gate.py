"""``loop doctor --gate``: whether the verify commands of a project can turn red."""

import json
from typing import Any

import pytest

WRITES = "printf 'def least(a, b):\\n    return a if a < b else b\\n' > least.py"
TESTS = "python3 -c 'from least import least; assert least(1, 2) == 1 == least(2, 1)'"


@pytest.fixture
def landed(project: Any) -> Any:
    """Two tasks whose work has landed, a third that was never begun."""
    project.manifest(
        project.task("T1", WRITES, verify_cmd=TESTS),
        project.task("T2", "echo 'x = 1' > other.py", verify_cmd="test -e other.py"),
    )
    project.commit()
    assert project.run().code == 0
    project.git("merge", "-q", "--ff-only", "loop/integration")
    project.manifest(
        project.task("T1", WRITES, verify_cmd=TESTS, status="done"),
        project.task("T2", "echo 'x = 1' > other.py", verify_cmd="test -e other.py", status="done"),
        project.task("T3", "touch third", verify_cmd="test -e third"),
        project.task("T4", "touch fourth", verify_cmd=None),
    )
    return project


def test_it_says_of_each_task_whether_its_gate_turns_red(landed: Any) -> None:
    done = landed.loop("doctor", "--gate")
    assert done.code == 2
    one, two, three, four = done.out.splitlines()
    assert one == (
        "  T1 turns red: least.py:2 `return a if a < b else b` -> `return a if a >= b else b`"
    )
    assert two == "! T2 stays green: other.py:1 `x = 1` -> `x = 2`"
    assert three == "  T3 is red already: exit 1 as it stands"
    assert four == "  T4 has no verify_cmd"


def test_named_tasks_are_tried_alone_and_their_document_names_each_fault(landed: Any) -> None:
    done = landed.loop("doctor", "--gate", "T1", "--json")
    assert done.code == 0
    (entry,) = json.loads(done.out)["tasks"]
    assert (entry["id"], entry["finding"]) == ("T1", "sensitive")
    assert entry["planted"][-1]["path"] == "least.py"


def test_a_command_that_cannot_run_is_no_proof(landed: Any) -> None:
    landed.manifest(landed.task("T1", WRITES, verify_cmd="no-such-program-here"))
    done = landed.loop("doctor", "--gate")
    assert done.code == 2
    assert done.out.startswith("! T1 could not be tried: the command is not found")


def test_without_a_landing_a_fault_is_planted_in_what_the_command_names(project: Any) -> None:
    project.write("a.txt", "value = 3\n")
    project.write("b.txt", "value = 4\n")
    project.manifest(project.task("T1", verify_cmd="grep -qx 'value = 4' b.txt"))
    project.commit()
    done = project.loop("doctor", "--gate")
    assert done.code == 0
    assert "T1 turns red: b.txt:1" in done.out


@pytest.mark.parametrize(
    ("argv", "said"),
    [
        (("doctor", "T1"), "only with --gate"),
        (("doctor", "--gate", "T9"), "has no such task"),
    ],
)
def test_bad_words_are_named(landed: Any, argv: tuple[str, ...], said: str) -> None:
    done = landed.loop(*argv, real=True)
    assert done.code == 2
    assert said in done.err
