"""A person's consent to steps and calls of a model: asked at the terminal, or left as a decision."""

import re
from collections.abc import Callable
from typing import Any

import pytest

from loopctl.testing import ScriptedCall, ScriptedReply
from loopctl.testing.script import ChatRequest

Make = Callable[..., Any]

STEPS = '[policy]\napprove = ["step:T1", "area:billing"]\n'
CALLS = '[policy]\napprove = ["bash:mv *"]\n'
DONE = ("todo_done", {"summary": "written"})
MOVE = ("bash", {"command": "mv README MOVED"})


def reply(*calls: tuple[str, dict[str, Any]]) -> ScriptedReply:
    return ScriptedReply(calls=tuple(ScriptedCall(name, given) for name, given in calls))


def write(task: str, text: str = "word\n") -> tuple[str, dict[str, Any]]:
    return ("write_file", {"path": f"{task}.txt", "content": text})


def task_of(request: ChatRequest) -> str:
    """Return which task a request is about."""
    words = "\n".join(str(message["content"]) for message in request.messages)
    return str(re.findall(r"Your task: (T\d) - ", words)[0])


class Twice:
    """Writes too little for T1 the first time, so that it takes a second step."""

    def __init__(self) -> None:
        self.asked: list[str] = []

    def __call__(self, request: ChatRequest) -> ScriptedReply:
        task = task_of(request)
        is_first = task == "T1" and task not in self.asked
        self.asked.append(task)
        return reply(write(task, "nothing\n" if is_first else "word\n"), DONE)


@pytest.fixture
def guarded(whole: Make) -> Any:
    """T1 and T2 have to be approved, by name and by tag; T3 has not."""
    one = whole(Twice())
    one.manifest("T1", "T2", "T3")
    path = one.root / "tasks" / "ACTIVE.toml"
    path.write_text(path.read_text().replace('id = "T2"', 'id = "T2"\narea = ["billing"]'))
    one.settings(STEPS)
    one.commit()
    return one


def asked(one: Any) -> list[str]:
    return [task_of(request) for request in one.model.chats]


def decisions(ended: Any) -> dict[str, str]:
    return {one["task"]: one["kind"] for one in ended.document["decisions"]}


@pytest.mark.slow
def test_steps_that_have_to_be_approved_wait_as_decisions_where_nobody_is_there(
    guarded: Any,
) -> None:
    ended = guarded.run()
    assert ended.code == 3, ended.err
    assert asked(guarded) == ["T3"]
    assert decisions(ended) == {"T1": "approval", "T2": "approval"}
    assert [ended.task(name)["status"] for name in ("T1", "T2", "T3")] == [
        "needs-human",
        "needs-human",
        "done",
    ]
    answered = guarded.loop("answer", "T1", "--approve", "--json")
    assert answered.code == 3, answered.err
    # One answer is good for both of its steps, and for no other task.
    assert asked(guarded) == ["T3", "T1", "T1"]
    assert guarded.on_branch("T1.txt") == "word\n"
    rejected = guarded.loop("answer", "T2", "--reject", "--json")
    assert (rejected.code, asked(guarded)[3:]) == (4, []), rejected.err
    assert rejected.task("T2")["status"] == "needs-human"


def test_steps_that_have_to_be_approved_are_asked_about_at_the_terminal(guarded: Any) -> None:
    with guarded.attended("--no-sandbox") as seat:
        assert "May T1 (Write T1) be worked on in this run?" in seat.until("\n> ")
        assert asked(guarded) == []
        seat.type("approve")
        assert "May T2 (Write T2) be worked on in this run?" in seat.until("\n> ")
        assert asked(guarded) == ["T1", "T1"]
        seat.type("reject")
        ended = seat.ended()
    assert ended.code == 4, ended.err
    assert asked(guarded) == ["T1", "T1", "T3"]
    assert [ended.task(name)["status"] for name in ("T1", "T2", "T3")] == [
        "done",
        "needs-human",
        "done",
    ]


@pytest.mark.slow
def test_an_empty_line_leaves_a_step_for_later_and_the_answer_goes_on(guarded: Any) -> None:
    with guarded.attended("T2", "--no-sandbox") as seat:
        seat.until("\n> ")
        seat.type("")
        ended = seat.ended()
    assert (ended.code, decisions(ended)) == (3, {"T2": "approval"}), ended.err
    answered = guarded.loop("answer", "T2", "--approve", "--json")
    assert answered.code == 0, answered.err
    assert asked(guarded) == ["T2"]


def moving(whole: Make, more: str = "") -> Any:
    """A reply with a call before and a call after the one that has to be approved."""
    one = whole([reply(write("T1", "first\n"), MOVE, write("T1"), DONE)])
    one.settings(CALLS + more)
    one.commit()
    return one


def files(one: Any) -> list[str]:
    listed: str = one.git("ls-tree", "--name-only", "loop/integration")
    return [name for name in listed.splitlines() if name.isupper() or name == "T1.txt"]


def test_a_call_is_asked_about_at_the_terminal_and_happens_once(whole: Make) -> None:
    one = moving(whole)
    with one.attended("--no-sandbox") as seat:
        assert "mv README MOVED" in seat.until("\n> ")
        seat.type("approve")
        ended = seat.ended()
    assert ended.code == 0, ended.err
    assert files(one) == ["MOVED", "T1.txt"]
    assert ended.task("T1")["steps"] == len(one.model.chats) == 1


@pytest.mark.parametrize(
    ("typed", "more"), [("reject", ""), (None, "approve_timeout_s = 1\n")], ids=["reject", "late"]
)
def test_a_call_that_nobody_lets_happen_is_an_error_and_its_step_goes_on(
    whole: Make, typed: str | None, more: str
) -> None:
    one = moving(whole, more)
    with one.attended("--no-sandbox") as seat:
        seat.until("\n> ")
        if typed is not None:
            seat.type(typed)
        ended = seat.ended()
    assert ended.code == 0, ended.err
    assert files(one) == ["README", "T1.txt"]
    assert (ended.task("T1")["status"], len(one.model.chats)) == ("done", 1)


@pytest.mark.slow
def test_a_rejected_call_is_told_to_the_model_in_another_process(whole: Make) -> None:
    one = whole([reply(MOVE), reply(write("T1"), DONE)])
    one.settings(CALLS)
    one.commit()
    assert one.run().code == 3
    answered = one.loop("answer", "T1", "--reject", "--json")
    assert answered.code == 0, answered.err
    assert files(one) == ["README", "T1.txt"]
    told = one.model.chats[-1].messages[-1]
    assert (told["role"], "reject" in str(told["content"])) == ("tool", True)
