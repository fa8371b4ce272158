"""`loop pause` while a model works: the step under way ends, and the run goes on from there."""

import threading
from collections.abc import Callable
from typing import Any

from loopctl.testing import Held, ScriptedCall, ScriptedReply

Make = Callable[..., Any]

LIMIT_S = 120
DONE = ("todo_done", {"summary": "written"})
PLAN = ("plan", {"todos": ["write the word", "look at it"]})


def reply(*calls: tuple[str, dict[str, Any]]) -> ScriptedReply:
    return ScriptedReply(calls=tuple(ScriptedCall(name, given) for name, given in calls))


def append(task: str) -> tuple[str, dict[str, Any]]:
    return ("bash", {"command": f"echo word >> {task}.txt"})


def pause_at(one: Any, requests: int, held: threading.Event) -> None:
    """Pause a run while that request waits for its reply; then let it end."""
    with one.begun("--no-sandbox") as process:
        assert one.model.wait_for(requests, LIMIT_S)
        asked = one.loop("pause")
        assert asked.code == 0, asked.err
        held.set()
        assert process.wait(LIMIT_S) == 130
    assert len(one.model.chats) == requests


def test_a_paused_step_ends_and_the_next_is_issued_by_resume(whole: Make) -> None:
    held = threading.Event()
    one = whole([reply(PLAN), Held(held, reply(append("T1"), DONE)), reply(DONE)])
    one.manifest("T1", mode="autonomous")
    one.commit()
    pause_at(one, 2, held)
    status = one.loop("status", "--json")
    assert status.document["tasks"]["todo"] == 1, status.out
    resumed = one.loop("resume", "--json")
    assert resumed.code == 0, resumed.err
    # What the step before the pause has done was saved, and is not done again.
    assert one.on_branch("T1.txt") == "word\n"
    assert (resumed.task("T1")["steps"], len(one.model.chats)) == (2, 3)
