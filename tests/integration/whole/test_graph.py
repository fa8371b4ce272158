"""Tasks of the model worker from the manifest to the branch, against a real wire."""

from collections.abc import Callable
from typing import Any

from loopctl.testing import ScriptedCall, ScriptedReply

Make = Callable[..., Any]


def reply(*calls: tuple[str, dict[str, Any]]) -> ScriptedReply:
    return ScriptedReply(calls=tuple(ScriptedCall(name, given) for name, given in calls))


def write(task: str, text: str = "word\n") -> tuple[str, dict[str, Any]]:
    return ("write_file", {"path": f"{task}.txt", "content": text})


DONE = ("todo_done", {"summary": "written"})
PLAN = ("plan", {"todos": ["write the word", "look at it"]})


def test_a_task_is_worked_on_by_a_model_and_lands(whole: Make) -> None:
    one = whole([reply(write("T1"), DONE)])
    ended = one.run()
    assert (ended.code, ended.err) == (0, ended.err)
    assert one.on_branch("T1.txt") == "word\n"
    task = ended.task("T1")
    assert (task["status"], task["steps"], task["worker"]) == ("done", 1, "graph")
    assert task["usage"]["usd"] > 0
    assert [call.key for call in one.model.chats] == ["sk-never-to-be-seen-4f1c9d"]


def test_an_autonomous_task_is_planned_first_and_the_gate_speaks_back(whole: Make) -> None:
    one = whole(
        [
            reply(PLAN),
            reply(write("T1", "nothing\n"), DONE),
            reply(DONE),
            reply(write("T1"), DONE),
        ]
    )
    one.manifest("T1", mode="autonomous")
    one.commit()
    ended = one.run()
    assert ended.code == 0, ended.err
    assert ended.task("T1")["steps"] == 3
    last = one.model.chats[-1].messages
    assert any("grep -q word T1.txt" in str(message["content"]) for message in last)
