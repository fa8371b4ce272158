"""Commands that pass and do not do the same, in real worktrees: compared, settled, asked about."""

import json
from typing import Any

import pytest

TEST = """
python3 -c "import csvs; assert csvs.split('a,,b') == {expected}, csvs.split('a,,b')"
"""
KEEPS = "def split(text):\n    return text.split(',')\n"
DROPS = "def split(text):\n    return [one for one in text.split(',') if one]\n"
VERIFY = "test -e csvs.py && for one in tests/*.sh; do sh $one || exit 1; done"
MAKE = """
case "${LOOP_OPTION:-fork}" in
  keeps) cp files/keeps.py csvs.py; cp files/keeps.sh tests/keeps.sh;;
  drops) cp files/drops.py csvs.py; DROPS_TEST;;
  fork) exec loop fork --question "Which loop?" --bucket quality --option keeps=so --option drops=so;;
esac
"""
OPTIONS = [{"name": "keeps", "prompt": "keep"}, {"name": "drops", "prompt": "drop"}]


@pytest.fixture
def files(project: Any) -> Any:
    """Files that the commands of the options copy."""
    project.write("tests/one.sh", "true\n")
    for name, text, expected in (("keeps", KEEPS, ["a", "", "b"]), ("drops", DROPS, ["a", "b"])):
        project.write(f"files/{name}.py", text)
        project.write(f"files/{name}.sh", TEST.format(expected=expected))
    project.commit()
    return project


def prepare(
    project: Any,
    *,
    forked: bool = False,
    tested: bool = True,
    goal: str = "Import",
    check: str | None = None,
) -> None:
    drops_test = "cp files/drops.sh tests/drops.sh" if tested else ":"
    command = MAKE.replace("DROPS_TEST", drops_test)
    extra = {} if forked else {"options": OPTIONS}
    one = project.task("T1", command, verify_cmd=VERIFY, budget={"loops": 12}, **extra)
    done_when = f"done_when = [{{ check = {json.dumps(check)} }}]" if check else ""
    project.manifest(one, head=f'[goal]\ntext = "{goal}"\n{done_when}')


def drive(project: Any, **how: Any) -> Any:
    prepare(project, **how)
    return project.run()


@pytest.mark.parametrize("how", [{}, {"forked": True}])
def test_a_person_is_asked_and_the_answer_lands_that_candidate(
    files: Any, how: dict[str, bool]
) -> None:
    outcome = drive(files, **how)
    assert outcome.code == 3, outcome.message
    (decision,) = files.decisions()
    assert (decision.kind, set(decision.options)) == ("scope", {"keeps", "drops"})
    assert "the tests of keeps fail on drops (AssertionError: ['a', 'b'])" in decision.question
    assert "the tests of drops fail on keeps (AssertionError: ['a', '', 'b'])" in decision.question
    assert files.landed() == []
    assert len(outcome.of("gate_finished")) == 2
    loser = next(name for name in decision.options if name != decision.best_guess)
    answered = files.answer(decision.id, loser)
    assert answered.code == 0
    assert files.landed() == ["T1"]
    assert files.on_branch("csvs.py") == {"keeps": KEEPS, "drops": DROPS}[loser].rstrip()
    assert answered.of("step_started") == answered.of("gate_finished") == []


def test_tests_of_one_side_are_enough(files: Any) -> None:
    assert drive(files, tested=False).code == 3
    (decision,) = files.decisions()
    assert "the tests of drops" not in decision.question


def test_the_goals_words_settle_it(files: Any) -> None:
    outcome = drive(files, goal="The variant keeps is wanted.")
    assert outcome.code == 0, outcome.message
    assert files.on_branch("csvs.py") == KEEPS.rstrip()


def test_the_goals_check_settles_it(files: Any) -> None:
    outcome = drive(files, check="python3 -c \"import csvs; assert '' in csvs.split(',,')\"")
    assert outcome.code == 0, outcome.message
    assert files.on_branch("csvs.py") == KEEPS.rstrip()
    (told,) = outcome.of("fork_classified")
    assert (told.chosen, told.bucket) == ("keeps", "scope")
    assert "it alone meets the goal's checks" in told.reason


def test_what_does_the_same_is_picked_by_its_size_without_a_question(files: Any) -> None:
    files.write("files/drops.py", f"# Of another look.\n{KEEPS}")
    files.write("files/drops.sh", files.read("files/keeps.sh") + "# of another look\n")
    files.commit()
    outcome = drive(files)
    assert outcome.code == 0, outcome.message
    assert outcome.of("fork_classified") == []
    assert files.on_branch("csvs.py") == KEEPS.rstrip()


def test_the_report_names_the_fork_and_an_answer_must_be_one_of_its_options(files: Any) -> None:
    prepare(files)
    assert files.loop().code == 3
    (report,) = (files.root / ".local/runs").glob("*/report.md")
    assert "do not do the same" in report.read_text()
    (decision,) = files.decisions()
    done = files.loop("answer", decision.id, "both of them")
    assert done.code == 2
    assert "wants one of its options" in done.err
    files.loop("answer", decision.id, "--reject")
    assert files.landed() == []
    assert files.status("T1") == "needs-human"
