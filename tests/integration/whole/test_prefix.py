"""What consecutive requests of one task have in common on the wire: four fifths of the shorter one.

Providers read a prompt in this order: tools, then messages. The pair around a compaction is the
exception, since a summary stands where turns were.
"""

import json
from collections.abc import Callable, Mapping, Sequence
from itertools import pairwise
from typing import Any

from loopctl.testing import ScriptedCall, ScriptedReply
from loopctl.testing.script import ChatRequest

SHARE = 0.8
STEPS = 10
COMPACTED = "in short:"

TASK = f"""
schema = 1

[goal]
text = "Ship the importer for tables of measurements, so that the lab can drop its own scripts"

[[task]]
id = "T1"
title = "Parse the header row of a table"
worker = "graph"
mode = "autonomous"
prompt = "Read the first row of each part as its header, and give the columns their names."
accept = ["an empty file gives an empty table", "a header without rows is a table"]
verify_cmd = "test -f part{STEPS}.py"
"""


def call(name: str, **given: Any) -> ScriptedCall:
    return ScriptedCall(name, given)


class Script:
    """Plans, then does each part in three replies: looks, writes and tries, closes."""

    def __init__(self) -> None:
        self._part = 1
        self._round = -2

    def __call__(self, request: ChatRequest) -> ScriptedReply:
        if not is_step(request):
            return ScriptedReply("The parts so far are written, and their checks pass.")
        self._round += 1
        if self._round == -1:
            return ScriptedReply("I look first.", (call("read_file", path="docs/import1.md"),))
        if self._round == 0:
            todos = [f"write part {number} of the importer" for number in range(1, STEPS + 1)]
            return ScriptedReply("It falls into parts.", (call("plan", todos=todos),))
        return self._work()

    def _work(self) -> ScriptedReply:
        number, turn = self._part, (self._round - 1) % 3
        if turn == 0:
            look = call("read_file", path=f"docs/import{number}.md")
            return ScriptedReply(f"I look at part {number}.", (look, call("bash", command="ls")))
        if turn == 1:
            write = call("write_file", path=f"part{number}.py", content="x = 1\n" * 40)
            check = call("bash", command=f"python3 part{number}.py && seq 300")
            return ScriptedReply(f"Now I write part {number}, and run it.", (write, check))
        self._part += 1
        done = call("todo_done", summary=f"part {number} is written and runs without an error")
        return ScriptedReply("", (done,))


def is_step(request: ChatRequest) -> bool:
    return any(tool["function"]["name"] == "bash" for tool in request.tools)


def messages(request: ChatRequest) -> str:
    return json.dumps(request.messages, ensure_ascii=False)


def whole_prompt(request: ChatRequest) -> str:
    return json.dumps(request.tools, ensure_ascii=False) + messages(request)


def share(one: str, other: str) -> float:
    length = min(len(one), len(other))
    return next((at for at in range(length) if one[at] != other[at]), length) / length


def shares(asked: Sequence[ChatRequest], text: Callable[[ChatRequest], str]) -> list[float]:
    """Return the shares of all pairs without a compaction between them."""
    return [
        share(text(one), text(other))
        for one, other in pairwise(asked)
        if messages(one).count(COMPACTED) == messages(other).count(COMPACTED)
    ]


def test_consecutive_requests_of_a_task_share_four_fifths_from_its_planning_on(whole: Any) -> None:
    one = whole(Script())
    files: Mapping[str, str] = {
        f"docs/import{number}.md": f"# Part {number} of the importer\n\n"
        + "A table of measurements has a header row with the names of its columns.\n" * 15
        for number in range(1, STEPS + 1)
    }
    (one.root / "docs").mkdir()
    for name, text in files.items():
        (one.root / name).write_text(text)
    (one.root / "tasks" / "ACTIVE.toml").write_text(TASK)
    one.commit()
    ended = one.run()
    assert ended.code == 0, ended.err
    assert ended.task("T1")["steps"] == STEPS

    asked = [request for request in one.model.chats if is_step(request)]
    assert len(asked) == 2 + 3 * STEPS
    assert len({json.dumps(request.tools) for request in asked}) == 1
    kept = shares(asked, whole_prompt)
    assert len(asked) - 1 - len(kept) <= 3, "compactions are rare"
    assert min(kept) >= SHARE
    assert min(shares(asked, messages)) >= SHARE
