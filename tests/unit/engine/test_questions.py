import pytest

from loopctl.domain import Option, Task, TaskId
from loopctl.engine.questions import budget
from loopctl.plan import Budget


@pytest.mark.parametrize(
    ("cap", "spent", "reason", "option"),
    [
        ("loops", Budget(loops_used=2), "loops=2 used", "loops=4"),
        ("loops", Budget(), "loops=0 used", "loops=1"),
        ("tokens", Budget(tokens_used=1_500_000), "tokens=1500000 used", "tokens=3000000"),
        ("wall", Budget(wall_ms=1_200), "wall_s=2 used", "wall_s=4"),
        ("usd", Budget(usd_used=0.251), "usd=0.26 used", "usd=1.26"),
    ],
)
def test_a_spent_budget_proposes_more_than_was_used(
    cap: str, spent: Budget, reason: str, option: str
) -> None:
    asked = budget(Task(TaskId("T1"), "One"), cap, spent)
    assert (asked.reason, asked.options) == (reason, (option,))
    assert "loop answer" not in asked.question


def test_what_a_candidate_has_used_counts_for_each_that_shares_the_cap() -> None:
    task = Task(TaskId("T1"), "One", options=(Option("a"), Option("b")))
    asked = budget(task, "loops", Budget(loops_used=2))
    assert (asked.reason, asked.options) == ("loops=4 used", ("loops=8",))
    assert budget(task, "wall", Budget(wall_ms=3000)).options == ("wall_s=6",)
