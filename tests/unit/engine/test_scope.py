"""What the words of a goal settle by rule; those of another language are left to the judge."""

import pytest

from loopctl.domain import Goal, Option
from loopctl.engine.scope import by_rule
from loopctl.steps import ForkRaised

RAISED = ForkRaised("Which way?", "scope", (Option("regex"), Option("parser")))


@pytest.mark.parametrize(
    "text", ["Read it by regex", "A parser is too much. Use regex", "regex", "The regex, please."]
)
def test_an_option_that_an_english_goal_names_is_taken(text: str) -> None:
    option, _ = by_rule(RAISED, Goal(text=text.replace("A parser is too much. ", "")))
    assert option == Option("regex")


@pytest.mark.parametrize(
    "text",
    [
        "CSV ohne regex lesen",
        "Lire le CSV sans regex",
        "Leer el CSV sin regex",
        "Leggere il CSV senza regex",
        "CSV lezen zonder regex",
        "Läs CSV utan regex",
        "Читать CSV без regex",
        "不要用 regex",
        "Read it without a regex",
    ],
)
def test_what_may_be_a_negation_is_not_read_by_rule(text: str) -> None:
    option, why = by_rule(RAISED, Goal(text=text))
    assert option is None
    assert why == "the goal says nothing of how far to go"


def test_only_the_sentence_that_is_not_english_is_left_out() -> None:
    option, _ = by_rule(RAISED, Goal(text="Kein Parser. Use the regex."))
    assert option == Option("regex")
