"""Twelve steps of a model on the wire: what the first one has found out is still told in the last."""

import json
from collections.abc import Callable
from typing import Any

import pytest

from loopctl.testing import ScriptedCall, ScriptedReply
from loopctl.testing.script import ChatRequest

Make = Callable[..., Any]

STEPS = 12
FACT = "the port of the lab is 7431"


class Script:
    """Plans twelve todos, and closes one in each step; its summaries keep what is said of a port."""

    def __init__(self) -> None:
        self.steps: list[str] = []
        self.summaries = 0

    def __call__(self, request: ChatRequest) -> ScriptedReply:
        words = "\n".join(str(message["content"]) for message in request.messages)
        if "You shorten the record" in words:
            self.summaries += 1
            kept = FACT if FACT in words else "nothing of note"
            return ScriptedReply(f"{kept}; the rest went well.")
        if "This step makes the plan" in str(request.messages[-1]["content"]):
            todos = [f"write line {number}" for number in range(1, STEPS + 1)]
            return ScriptedReply(calls=(ScriptedCall("plan", {"todos": todos}),))
        self.steps.append(words)
        number = len(self.steps)
        return ScriptedReply(
            FACT if number == 1 else f"Line {number} is next.",
            calls=(
                ScriptedCall("bash", {"command": f"echo word {number} >> T1.txt"}),
                ScriptedCall("todo_done", {"summary": f"line {number} is written"}),
            ),
        )


@pytest.mark.slow
def test_a_fact_of_the_first_step_is_told_in_the_twelfth_and_no_step_has_waited(
    whole: Make,
) -> None:
    script = Script()
    one = whole(script)
    one.manifest("T1", mode="autonomous")
    one.commit()
    ended = one.run()
    assert ended.code == 0, ended.err
    assert len(script.steps) == STEPS
    assert FACT in script.steps[-1]
    (log,) = (one.root / ".local" / "runs").glob("*/events.jsonl")
    events = [json.loads(line) for line in log.read_text().splitlines()]
    compacted = [event for event in events if event["type"] == "context_compacted"]
    assert compacted, "nothing was summarised"
    assert not any(event["in_line"] or event["is_fallback"] for event in compacted)
    turns = [
        turn
        for event in compacted
        if not event["is_merge"]
        for turn in range(event["first"], event["last"] + 1)
    ]
    assert len(turns) == len(set(turns))
    assert len(compacted) <= script.summaries
