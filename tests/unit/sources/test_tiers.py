"""Who is asked about a whole goal: the best model there is."""

from loopctl.domain import Goal
from loopctl.judges.criterion import CriterionJudge
from loopctl.sources import backlog, interview
from loopctl.testing import MemoryRepository
from loopctl.testing.context import ScriptedOracle


def test_kickoff_is_premium() -> None:
    asked = [interview.question("facts", "r1"), backlog.question("facts", (), "r1")]
    assert [(one.purpose, one.tier) for one in asked] == [("kickoff", "premium")] * 2


def test_judgments_of_the_goal_are_premium() -> None:
    oracle, repository = ScriptedOracle(), MemoryRepository()
    head = repository.head()
    CriterionJudge(oracle, repository, Goal("g"), "r1", head)("it is nice", head)
    assert [(one.purpose, one.tier) for one in oracle.asked] == [("judge", "premium")]
