"""The judge of a fork of scope: what it is asked, and which of its answers count."""

import json
from typing import Any

import pytest

from loopctl.contextports import Question
from loopctl.domain import Criterion, Goal, Limits, Option, Task, TaskId
from loopctl.judges.scope import ScopeJudge
from loopctl.steps import ForkRaised
from loopctl.testing.context import ScriptedOracle

GOAL = Goal("Import the rows\nthat people need", (Criterion(criterion="dates are read"),))
FORK = ForkRaised("How far?", "scope", (Option("rows", "rows alone"), Option("dates")))
TASK = Task(TaskId("T1"), "Import", budget=Limits(tokens=9))


def judged(answer: Any, goal: Goal = GOAL) -> tuple[str, str, list[Question]]:
    text = None if answer is None else json.dumps(answer)
    oracle = ScriptedOracle(lambda _question: text)
    name, why = ScopeJudge(oracle, goal, "r1")(FORK, TASK)
    return name, why, oracle.asked


@pytest.mark.parametrize("quote", ["dates are read", "ROWS that  people"])
def test_an_option_counts_with_a_quote_that_stands_in_the_goal(quote: str) -> None:
    name, why, _ = judged({"choice": 2, "quote": quote, "why": "it asks for them"})
    assert name == "dates"
    assert "it asks for them" in why


@pytest.mark.parametrize(
    ("answer", "why"),
    [
        ({"choice": 2, "quote": "times are read", "why": "x"}, "quotes nothing"),
        ({"choice": 2, "quote": "", "why": "x"}, "quotes nothing"),
        ({"choice": 0, "quote": "dates are read", "why": "unclear"}, "silent: unclear"),
        (None, "no model could judge"),
    ],
)
def test_all_other_answers_leave_the_goal_silent(answer: Any, why: str) -> None:
    name, said, _ = judged(answer)
    assert name == ""
    assert why in said


def test_the_premium_model_is_asked_within_the_caps_of_the_task() -> None:
    (question,) = judged({"choice": 0, "quote": "", "why": ""})[2]
    assert (question.tier, question.task, question.caps) == ("premium", "T1", Limits(tokens=9))
    assert "Import the rows\nthat people need" in question.prompt


def test_nobody_is_asked_without_a_goal() -> None:
    name, _, asked = judged({"choice": 1, "quote": "x", "why": ""}, Goal())
    assert (name, asked) == ("", [])
