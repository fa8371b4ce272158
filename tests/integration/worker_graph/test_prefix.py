"""What consecutive requests of one task have in common: a long prefix."""

from collections.abc import Callable
from itertools import pairwise
from typing import Any

import pytest

from loopctl.contextports import Memory
from loopctl.domain import Criterion, Goal, Option, Task, TaskId
from loopctl.past import Past, Summary, Turn
from loopctl.steps import TurnTaken
from loopctl.testing.steps import Asked, calling

GOAL = "Ship the importer — «exactly»\n\n  as written:\ttabs, ümläuts, trailing space \n"
TASK = Task(
    id=TaskId("T440"),
    title="Parse the header row",
    prompt="Read the first row as the header.",
    accept=("an empty file gives an empty table", "a header without rows is a table"),
    verify_cmd="python -m pytest -q tests/test_header.py",
    may_edit=("tests/test_header.py",),
)
SHARE = 0.8


def prompt(asked: Asked) -> str:
    """Return all that is sent, in the order in which providers read it: tools, then messages."""
    return repr(asked.specs) + asked.text


def share(one: str, other: str) -> float:
    """Return how much of the shorter prompt is a prefix of both."""
    length = min(len(one), len(other))
    return next((i for i in range(length) if one[i] != other[i]), length) / length


@pytest.mark.parametrize("text", [prompt, lambda asked: asked.text], ids=["all", "messages"])
def test_consecutive_requests_share_most_of_their_characters_as_a_prefix(
    play: Any, text: Callable[[Asked], str]
) -> None:
    past = Past()
    asked: list[Asked] = []
    for number in range(1, 9):
        reply = calling(
            ("read_file", {"path": f"importer/part{number}.py"}),
            ("bash", {"command": f"python -m pytest -q -k part{number}"}),
            text=f"I look at part {number}.",
        )
        played = play(
            reply,
            calling(("write_file", {"path": f"part{number}.py", "content": "x = 1\n" * 20})),
            calling(("todo_done", {"summary": f"part {number} is written"})),
            past=past,
            task=TASK,
            goal=Goal(GOAL),
            loop_iteration=number,
            step_goal=f"write part {number}",
            todos=tuple(f"[{n}] write part {n}" for n in range(number, 9)),
            known=(Memory("docs/import.md", "A table has a header row. " * 40, 1.0),) * 5,
            recalled=(Memory("docs/import.md", f"part {number} is like the others", 1.0),),
        )
        asked += played.model.asked
        past = Past(turns=(*past.turns, Turn(number, played.only(TurnTaken).text)))

    shares = [share(one, other) for one, other in pairwise(map(text, asked))]
    assert len(shares) == 23
    assert min(shares) >= SHARE


def test_long_records_and_long_observations_leave_the_share_as_it_is(play: Any) -> None:
    past, observation = Past(), ""
    asked: list[Asked] = []
    known = tuple(Memory(f"docs/{n}.md", f"{n} " * 500, 1.0) for n in range(5))
    for number in range(1, 9):
        played = play(
            calling(("read_file", {"path": "x" * 900}), text="t" * 5000),
            calling(("todo_done", {"summary": "y" * 900}), text="u" * 5000),
            past=past,
            known=known,
            recalled=(Memory("docs/more.md", f"{number}" * 1200, 1.0),) * 2,
            observation=observation,
            loop_iteration=number,
            todos=tuple(f"done: part {n} ({'it is done ' * 60})" for n in range(3)),
        )
        asked += played.model.asked
        past = Past(turns=(*past.turns, Turn(number, played.only(TurnTaken).text)))
        observation = f"the check of part {number} failed\n" * 400

    assert min(share(one, other) for one, other in pairwise(map(prompt, asked))) >= SHARE


def test_requests_of_one_step_are_each_a_prefix_of_the_next(play: Any) -> None:
    script = [calling(("bash", {"command": str(n)})) for n in range(4)]
    asked = play(*script, calling(("todo_done", {"summary": "s"}))).model.asked

    for one, other in pairwise(asked):
        assert other.messages[: len(one.messages)] == one.messages


def test_summaries_stay_before_the_turns_and_in_order(play: Any) -> None:
    past = Past(
        (Summary(1, 2, "first summary"), Summary(3, 4, "second summary")),
        (Turn(5, "fifth turn"), Turn(6, "sixth turn")),
    )
    text = play(calling(("todo_done", {"summary": "s"})), past=past).model.asked[0].text
    words = ["Steps 1 to 2", "first summary", "Steps 3 to 4", "second summary", "Step 5:"]
    places = [text.index(word) for word in (*words, "fifth turn", "Step 6:", "sixth turn")]

    assert places == sorted(places)


@pytest.mark.parametrize("changes", [{}, {"is_planning": True}, {"step_goal": ""}])
def test_goal_is_byte_identical_in_every_request(play: Any, changes: dict[str, Any]) -> None:
    goal = Goal(GOAL, (Criterion(check="true"),))
    talk = calling(text="Hm.")
    played = play(talk, talk, goal=goal, option=Option("regex", "by regex"), **changes)

    for asked in played.model.asked:
        assert any(GOAL in message["content"] for message in asked.messages if message["content"])
