import signal
from collections.abc import Callable
from typing import Any

import pytest

from loopctl.clock import SystemClock
from loopctl.contextports import Answered, Question, Unanswered
from loopctl.domain import Limits, Usage
from loopctl.errors import CancelledError
from loopctl.moneyports import Claim
from loopctl.worker.oracle import ChildOracle

USAGE = Usage(10, 5, 0.25)


def question(prompt: str) -> Question:
    caps = Limits(tokens=9)
    return Question("summary", "r7", "T7", "cheap", "You sum up.", prompt, caps=caps)


def test_a_question_is_answered_and_paid_for_by_its_task(house: Any) -> None:
    assert house.oracle.ask(question("what?")) == Answered("WHAT?", USAGE)
    assert house.purse.claims == [Claim("r7", "T7", "summary", "m", 100, 1.0, Limits(tokens=9))]
    assert house.purse.settled == {1: USAGE}


def test_no_money_is_no_answer(house: Any) -> None:
    house.purse.is_empty = True
    assert house.oracle.ask(question("what?")) == Unanswered("there is nothing left")


def test_a_fault_is_no_answer_in_one_line_with_what_it_has_cost(house: Any) -> None:
    found = house.oracle.ask(question("fail"))
    assert isinstance(found, Unanswered)
    assert found.usage == USAGE
    assert "ZeroDivisionError: by zero" in found.reason
    assert "\n" not in found.reason


def test_a_child_that_dies_of_a_question_is_tried_once_more(house: Any) -> None:
    found = house.oracle.ask(question("die"))
    assert isinstance(found, Unanswered)
    assert "ended by signal 9" in found.reason
    assert [child.returncode for child in house.children] == [-signal.SIGKILL] * 2
    assert house.oracle.ask(question("on")) == Answered("ON", USAGE)


def test_a_stop_raises_and_ends_the_question(house: Any) -> None:
    house.oracle.ask(question("first"))
    house.cancel.set()
    with pytest.raises(CancelledError):
        house.oracle.ask(question("hang"))


def test_vectors_come_for_each_text_and_the_run_pays(house: Any) -> None:
    assert house.oracle.embed(["a", "bcd"]) == ((1.0, 1 / 3), (3.0, 1 / 3))
    assert house.purse.claims == [Claim("r1", "@goal", "embed", "m", 100, 1.0)]


def test_vectors_that_cannot_be_had_are_none(house: Any) -> None:
    assert house.oracle.embed(["none"]) is None
    house.purse.is_empty = True
    assert house.oracle.embed(["a"]) is None


def test_steps_and_questions_share_one_child(house: Any) -> None:
    house.step(["tell", "a"])
    house.oracle.ask(question("b"))
    assert len(house.children) == 1


def test_without_a_model_nothing_is_started(house: Any) -> None:
    oracle = ChildOracle(
        house.process, house.purse, clock=SystemClock(), run_id="r1", is_there=False
    )
    assert not oracle.is_there
    found = oracle.ask(question("what?"))
    assert isinstance(found, Unanswered)
    assert "loop doctor" in found.reason
    assert oracle.embed(["a"]) is None
    assert house.children == []


def test_a_process_that_cannot_be_started_is_no_answer(make: Callable[..., Any]) -> None:
    found = make(argv=("no-such-python",)).oracle.ask(question("what?"))
    assert isinstance(found, Unanswered)
    assert "no-such-python could not be started" in found.reason
