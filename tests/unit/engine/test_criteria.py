from typing import Any

import pytest

from loopctl.domain import GOAL, REJECTED, Criterion, Decision, DecisionKind, Goal, Sha
from loopctl.engine.anchor import Anchor
from loopctl.engine.answers import Answer, check
from loopctl.engine.criteria import Judged, judge_goal, said_yes
from loopctl.errors import AnswerError
from loopctl.testing import ScriptedGate
from loopctl.verdict import Blame, Check, CheckResult, Verdict

CHECKED = Goal("g", (Criterion(check="make ok"), Criterion(check="make more")))
SAID = Goal("g", (Criterion(criterion="it is nice"),))


def judged(bench: Any, goal: Goal, head: str = "c1", **answers: str) -> Judged:
    asked = judge_goal(Anchor(goal, bench.gate), Sha(head), bench.log.emit, {})
    known = {(draft.question, draft.reason): answers["said"] for draft in asked.drafts if answers}
    return judge_goal(Anchor(goal, bench.gate), Sha(head), bench.log.emit, known)


def test_goal_without_criteria_asks_nothing(bench: Any) -> None:
    assert judged(bench, Goal("g")) == Judged()
    assert bench.log.events == []


def test_commands_that_pass_meet_the_goal(bench: Any) -> None:
    bench.gate.met = frozenset({"make ok", "make more"})
    assert judged(bench, CHECKED) == Judged()
    assert bench.log.events[-1].met is True


def test_command_that_fails_is_asked_about_and_the_goal_is_not_met(bench: Any) -> None:
    bench.gate.met = frozenset({"make ok"})
    found = judged(bench, CHECKED)
    assert found.is_unmet
    assert ["make more" in draft.question for draft in found.drafts] == [True]
    assert found.drafts[0].kind is DecisionKind.SCOPE
    assert bench.log.events[-1].met is False


def test_command_that_could_not_judge_is_the_machines_and_not_still_failing(bench: Any) -> None:
    class Broken(ScriptedGate):
        def run_check(self, command: str, commit: Sha) -> CheckResult:
            del commit
            return CheckResult(
                Check.VERIFY, Verdict.UNKNOWN, Blame.ENVIRONMENT, "out of time", command
            )

    bench.gate = Broken()
    found = judged(bench, Goal("g", (Criterion(check="make ok"),)))
    assert (found.is_unmet, found.drafts[0].kind) == (False, DecisionKind.ENVIRONMENT)
    assert "out of time" in found.drafts[0].question
    assert bench.log.events[-1].met is None


def test_sentence_is_unknown_until_a_human_says(bench: Any) -> None:
    found = judged(bench, SAID)
    assert [draft.kind for draft in found.drafts] == [DecisionKind.VERIFY]
    assert judged(bench, SAID, said="Yes, it is") == Judged()
    assert judged(bench, SAID, said="no: too plain") == Judged(is_unmet=True)
    assert judged(bench, SAID, said=REJECTED) == Judged(is_unmet=True)


def test_answer_counts_for_the_commit_it_was_about_and_no_other(bench: Any) -> None:
    draft = judged(bench, SAID, head="c1").drafts[0]
    known = {(draft.question, draft.reason): "yes"}
    assert judge_goal(Anchor(SAID, bench.gate), Sha("c1"), bench.log.emit, known) == Judged()
    assert judge_goal(Anchor(SAID, bench.gate), Sha("c2"), bench.log.emit, known).drafts != ()


@pytest.mark.parametrize(
    ("answer", "meaning"),
    [
        ("yes", True),
        ("Y", True),
        ("Yes, but see below", True),
        ("no", False),
        ("No. It lacks an example", False),
        ("reject", False),
        ("it is not nice", None),
        ("now it is fine", None),
        ("maybe", None),
        ("false", None),
        ("", None),
        ("...", None),
    ],
)
def test_only_a_plain_yes_or_no_at_the_beginning_says_anything(
    answer: str,
    meaning: bool | None,  # noqa: FBT001 - a parametrized value
) -> None:
    assert said_yes(answer) is meaning


def test_other_answers_to_a_criterion_are_refused() -> None:
    asked = Decision("@goal.1", GOAL, "r1", DecisionKind.VERIFY, "Is it?")
    with pytest.raises(AnswerError, match="a yes or a no"):
        check([Answer("@goal.1", "it is not nice")], [asked])
    assert check([Answer("@goal.1", "yes, very")], [asked]) == (asked,)
