"""The stop anchor: what it looks at, in which order, and what it remembers."""

from loopctl.domain import Criterion, Goal, Sha
from loopctl.engine.anchor import Anchor
from loopctl.testing import ScriptedGate
from loopctl.verdict import Blame, Check, CheckResult, Verdict

GOAL = Goal("g", (Criterion(check="slow"), Criterion(check="quick")))


class Watched(ScriptedGate):
    """Remembers what it was asked; ``slow`` takes longer than ``quick``."""

    def __init__(self, *met: str) -> None:
        super().__init__()
        self.met = frozenset(met)
        self.looks: list[str] = []
        self.unknown = False

    def run_check(self, command: str, commit: Sha) -> CheckResult:
        self.looks.append(f"{command}@{commit}")
        ms = 900 if command == "slow" else 5
        if self.unknown:
            return CheckResult(Check.VERIFY, Verdict.UNKNOWN, Blame.ENVIRONMENT, ms=ms)
        verdict = Verdict.PASS if command in self.met else Verdict.FAIL
        return CheckResult(Check.VERIFY, verdict, ms=ms)


def test_goal_without_criteria_is_never_met() -> None:
    assert not Anchor(Goal("g"), Watched()).is_met(Sha("c1"))


def test_first_criterion_that_is_not_met_ends_the_look() -> None:
    gate = Watched("quick")
    assert not Anchor(GOAL, gate).is_met(Sha("c1"))
    assert gate.looks == ["slow@c1"]


def test_what_was_not_met_and_was_quick_is_looked_at_first() -> None:
    gate = Watched()
    anchor = Anchor(GOAL, gate)
    for command in ("slow", "quick"):
        anchor.run_check(command, Sha("c1"))
    gate.looks.clear()
    gate.met = frozenset({"slow"})
    assert not anchor.is_met(Sha("c2"))
    assert gate.looks == ["quick@c2"]


def test_goal_is_met_only_where_all_hold_on_that_very_commit() -> None:
    gate = Watched("slow", "quick")
    anchor = Anchor(GOAL, gate)
    assert anchor.is_met(Sha("c1"))
    gate.met = frozenset({"slow"})
    assert not anchor.is_met(Sha("c2"))


def test_what_was_seen_on_a_commit_is_not_looked_at_again_but_for_what_could_not_be_judged() -> (
    None
):
    gate = Watched("slow", "quick")
    anchor = Anchor(GOAL, gate)
    gate.unknown = True
    assert not anchor.is_met(Sha("c1"))
    gate.unknown = False
    assert anchor.is_met(Sha("c1"))
    seen = len(gate.looks)
    assert anchor.is_met(Sha("c1"))
    assert len(gate.looks) == seen


def test_sentence_that_nothing_can_judge_never_meets_a_goal_by_itself() -> None:
    goal = Goal("g", (Criterion(criterion="nice"), Criterion(check="quick")))
    gate = Watched("quick")
    assert not Anchor(goal, gate).is_met(Sha("c1"))
    seen: list[str] = []

    def judge(text: str, commit: Sha) -> tuple[Verdict, str]:
        seen.append(f"{text}@{commit}")
        return Verdict.PASS, "it says so"

    anchor = Anchor(goal, gate, judge)
    assert anchor.is_met(Sha("c1"))
    assert anchor.is_met(Sha("c1"))
    assert seen == ["nice@c1"]
