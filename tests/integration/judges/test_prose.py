"""What is a result of a prose task, on trees of git; and in which order it is judged."""

import json
from typing import Any

import pytest

from loopctl.clock import SystemClock
from loopctl.domain import Goal, Kind, Task, TaskId
from loopctl.judges.gate import code_gate
from loopctl.judges.jury import Jury
from loopctl.judges.output import MOST_BYTES
from loopctl.records import Candidate
from loopctl.settings import BudgetSettings, GateSettings
from loopctl.testing.context import ScriptedOracle
from loopctl.verdict import Check, GateResult, Verdict

BASE = {"docs/plan.md": "an old plan\n", "a.py": "x = 1\n", "tests/test_a.py": "def test(): ...\n"}
YES = json.dumps(
    {
        "serves": "yes",
        "why": "it does",
        "quotes": ["a new plan"],
        "objections": [],
        "questions": [],
    }
)
SOUND = json.dumps({"is_sound": True, "quotes": ["a new plan"], "criticisms": []})


class Prose:
    """A gate over the bench's repository, with judges that find everything good."""

    def __init__(self, bench: Any, **task: Any) -> None:
        self.bench = bench
        self.oracle = ScriptedOracle(
            lambda question: YES if "serves a goal" in question.system else SOUND
        )
        fields = {"kind": Kind.PLAN, "output": "docs/plan.md", **task}
        self.task = Task(TaskId("T1"), "Plan", **fields)

    def judge(self, tree: str, *, is_draft: bool = False, typecheck: str = "off") -> GateResult:
        gate = code_gate(
            self.bench.repository,
            self.bench.cache,
            GateSettings(typecheck=typecheck, timeout_s=60),
            clock=SystemClock(),
            jury=Jury(self.oracle, Goal("The goal"), "r1", BudgetSettings(), self.bench.cache),
        )
        base = self.bench.base
        return gate.judge(Candidate(self.task, "main", base, tree, base, is_draft=is_draft))


def checks(result: GateResult) -> list[str]:
    return [f"{one.check} {one.verdict}" for one in result.checks]


@pytest.fixture
def prose(bench: Any) -> Prose:
    return Prose(bench.start(BASE))


def test_a_text_that_its_judge_lets_pass_passes(prose: Prose) -> None:
    result = prose.judge(prose.bench.tree({"docs/plan.md": "a new plan\n"}))
    assert checks(result) == ["apply pass", "output pass", "alignment pass"]
    assert result.is_passed


def test_a_draft_that_its_critic_finds_sound_does_not_pass(prose: Prose) -> None:
    prose.task = Task(
        TaskId("T1"), "Plan", kind=Kind.PLAN, output="docs/plan.md", verify_cmd="true"
    )
    result = prose.judge(prose.bench.tree({"docs/plan.md": "a new plan\n"}), is_draft=True)
    assert checks(result) == ["apply pass", "output pass", "verify pass", "critique pass"]
    assert not result.is_passed
    assert not result.is_unverified


@pytest.mark.parametrize(
    ("files", "drop", "said"),
    [
        ({"a.py": "x = 2\n"}, (), "docs/plan.md is as it was before"),
        ({"a.py": "x = 2\n"}, ("docs/plan.md",), "docs/plan.md is not there"),
        ({"docs/plan.md": ""}, (), "docs/plan.md is empty"),
        ({"docs/plan.md": " \n\t\n"}, (), "docs/plan.md is empty"),
        ({"docs/plan.md": "a\0b"}, (), "docs/plan.md is empty or no text"),
        ({"docs/plan.md": "w " * MOST_BYTES}, (), f"more than {MOST_BYTES} bytes"),
    ],
    ids=["unchanged", "missing", "empty", "blank", "binary", "endless"],
)
def test_no_text_is_no_result_and_no_judge_is_asked(
    prose: Prose, files: dict[str, str], drop: tuple[str, ...], said: str
) -> None:
    result = prose.judge(prose.bench.tree(files, drop=drop))
    assert checks(result) == ["apply pass", "output fail"]
    assert said in result.checks[-1].reason
    assert prose.oracle.asked == []


def test_a_link_is_no_result(prose: Prose) -> None:
    tree = prose.bench.tree({"docs/plan.md": "../a.py"}, mode="120000")
    result = prose.judge(tree)
    assert checks(result) == ["apply pass", "output fail"]
    assert "is a link" in result.checks[-1].reason


def test_the_path_of_a_result_may_be_written_in_another_way(bench: Any) -> None:
    prose = Prose(bench.start(BASE), output="./docs//plan.md")
    assert prose.judge(prose.bench.tree({"docs/plan.md": "a new plan\n"})).is_passed


def test_without_a_name_the_texts_of_the_diff_are_judged(bench: Any) -> None:
    prose = Prose(bench.start(BASE), output=None)
    tree = prose.bench.tree({"b.md": "a new plan\n", "c.md": "and more\n", "d.bin": "\0"})
    assert prose.judge(tree).is_passed
    (question,) = prose.oracle.asked
    assert "--- b.md\na new plan\n" in question.prompt
    assert "--- c.md\nand more\n" in question.prompt
    assert "changes besides (1): d.bin" in question.prompt


def test_without_a_name_a_diff_that_brings_no_text_is_no_result(bench: Any) -> None:
    prose = Prose(bench.start(BASE), output=None)
    assert checks(prose.judge(prose.bench.tree(drop=["a.py"]))) == ["apply pass", "output fail"]


def test_what_no_judge_reads_does_not_come_along_unless_the_task_may_edit_it(bench: Any) -> None:
    files = {"docs/plan.md": "a new plan\n", "a.py": "x = 2\n", "b.png": "\0"}
    prose = Prose(bench.start(BASE), may_edit=("a.py",))
    result = prose.judge(bench.tree(files))
    assert checks(result)[-1] == "output fail"
    assert "changes b.png besides docs/plan.md" in result.checks[-1].reason
    prose = Prose(bench, may_edit=("a.py", "*.png"))
    assert prose.judge(bench.tree(files)).is_passed


def test_a_judge_is_told_what_the_diff_changes_besides(bench: Any) -> None:
    prose = Prose(bench.start(BASE), may_edit=("a.py",))
    prose.judge(prose.bench.tree({"docs/plan.md": "a new plan\n", "a.py": "x = 2\n"}))
    assert "changes besides (1): a.py" in prose.oracle.asked[0].prompt


def test_a_diff_of_nothing_but_the_text_has_no_types_and_any_other_has(bench: Any) -> None:
    prose = Prose(bench.start(BASE), may_edit=("a.py",))
    text = {"docs/plan.md": "a new plan\n"}
    alone = prose.judge(prose.bench.tree(text), typecheck="exit 1")
    assert checks(alone) == ["apply pass", "output pass", "alignment pass"]
    more = prose.judge(prose.bench.tree({**text, "a.py": "x = 2\n"}), typecheck="exit 1")
    assert checks(more)[2].startswith("typecheck")


def test_a_verify_command_comes_before_any_judge(bench: Any) -> None:
    prose = Prose(bench.start(BASE), verify_cmd="grep -q heading docs/plan.md")
    result = prose.judge(prose.bench.tree({"docs/plan.md": "a new plan\n"}))
    assert checks(result)[-1] == "verify fail"
    assert prose.oracle.asked == []


def test_protected_files_stay_protected_from_prose(prose: Prose) -> None:
    tree = prose.bench.tree({"docs/plan.md": "a new plan\n", "tests/test_a.py": "pass\n"})
    assert checks(prose.judge(tree)) == ["apply fail"]


def test_a_key_in_a_text_waits_for_a_person_but_not_in_a_draft(prose: Prose) -> None:
    key = "ghp_" + "a" * 36
    tree = prose.bench.tree({"docs/plan.md": f"a new plan\n{key}\n"})
    assert checks(prose.judge(tree, is_draft=True))[-1] == "critique pass"
    result = prose.judge(tree)
    assert checks(result)[-2:] == ["alignment pass", "approval fail"]
    assert all(key not in question.prompt for question in prose.oracle.asked)


def test_without_a_jury_nothing_but_a_persons_word_lets_a_text_pass(bench: Any) -> None:
    bench.start(BASE)
    tree = bench.tree({"docs/plan.md": "a new plan\n"})
    task = Task(TaskId("T1"), "Plan", kind=Kind.DOC, output="docs/plan.md", verify_cmd="true")
    result = bench.gate().judge(Candidate(task, "main", bench.base, tree, bench.base))
    last = result.checks[-1]
    assert (last.check, last.verdict) == (Check.ALIGNMENT, Verdict.UNKNOWN)
    assert result.is_to_be_approved
    approved = Task(
        TaskId("T1"),
        "Plan",
        kind=Kind.DOC,
        output="docs/plan.md",
        approved=(last.hits[0].key,),
    )
    candidate = Candidate(approved, "main", bench.base, tree, bench.base)
    assert bench.gate().judge(candidate).is_passed
