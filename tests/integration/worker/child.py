"""A model worker whose steps are scripts: run by tests as a real child process.

A step's goal is JSON: a list of instructions, each a list of a word and its arguments. It goes about
replies as a real step does: kept ones are given again, others are asked for, paid and kept.
"""

import json
import os
import sys
import threading
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from loopctl.calls import ToolCall, ToolResult, ToolSpec
from loopctl.contextports import Answered, Question, Unanswered
from loopctl.domain import Usage
from loopctl.errors import EnvironmentFaultError
from loopctl.moneyports import Refused
from loopctl.steps import (
    BudgetRefused,
    StepEvent,
    StepRequest,
    ToolCallFinished,
    ToolCallStarted,
    TurnTaken,
    UsageReported,
    WorkerProgress,
    interrupt_for,
)
from loopctl.worker.door import Door, Till
from loopctl.worker.serve import ClaimOf, Handlers, main

USAGE = Usage(10, 5, 0.25)


@dataclass
class Model:
    routes: str
    till: Till
    claim_of: ClaimOf
    stop: threading.Event

    def pay(self, purpose: str, usage: Usage = USAGE) -> Refused | None:
        claim = self.claim_of(purpose, "m", 100, 1.0)
        reserved = self.till.reserve(claim)
        if isinstance(reserved, Refused):
            return reserved
        self.till.settle(reserved.id, usage)
        return None


class Steps:
    """One step, instruction by instruction."""

    def __init__(
        self, request: StepRequest, specs: tuple[ToolSpec, ...], door: Door, model: Model
    ) -> None:
        self.request, self.specs, self.door, self.model = request, specs, door, model
        self.replies = 0

    def run(self) -> Iterator[StepEvent]:
        for word, *args in json.loads(self.request.step_goal):
            yield from getattr(self, word)(*args)
        yield WorkerProgress(
            made_tool_calls=True, tool_calls_errored=False, response_delta_hash="done"
        )

    def tell(self, text: str) -> Iterator[StepEvent]:
        yield TurnTaken(text)

    def tell_much(self, length: int) -> Iterator[StepEvent]:
        yield TurnTaken("x" * length)

    def reply(self, text: str) -> Iterator[StepEvent]:
        number = self.request.first_reply + self.replies
        given = self.request.replies[self.replies : self.replies + 1]
        self.replies += 1
        if given:
            self.door.keep_reply(number, given[0])
            return
        if refused := self.model.pay("step"):
            yield BudgetRefused(refused.cap, refused.reason)
            return
        self.door.keep_reply(number, text)
        yield UsageReported(USAGE)

    def call(self, ordinal: int, tool: str, arguments: Any) -> Iterator[StepEvent]:
        yield ToolCallStarted(ordinal, tool)
        came = self.door.call(self._call(ordinal, tool, arguments))
        if isinstance(came, ToolResult):
            yield ToolCallFinished(ordinal, tool, came.content, came.is_error)
        else:
            yield interrupt_for(came)

    def foreign_call(self, session: str, iteration: int) -> Iterator[StepEvent]:
        self.door.call(ToolCall(session, iteration, 0, "look"))
        yield TurnTaken("it was made")

    def rule(self, tool: str) -> Iterator[StepEvent]:
        yield TurnTaken(repr(self.door.rule(self._call(0, tool, {}))))

    def threads(self, count: int) -> Iterator[StepEvent]:
        said: list[str] = [""] * count

        def ask(number: int) -> None:
            came = self.door.call(self._call(number, "look", {"at": number}))
            said[number] = came.content if isinstance(came, ToolResult) else ""

        asking = [threading.Thread(target=ask, args=(number,)) for number in range(count)]
        for thread in asking:
            thread.start()
        for thread in asking:
            thread.join()
        yield TurnTaken(" ".join(said))

    def print(self, text: str) -> Iterator[StepEvent]:
        print(text, flush=True)
        os.write(1, text.encode())
        os.system(f"echo {text}")  # noqa: S605
        yield TurnTaken("printed")

    def read_input(self) -> Iterator[StepEvent]:
        yield TurnTaken(repr(os.read(0, 10)))

    def variables(self) -> Iterator[StepEvent]:
        yield TurnTaken(json.dumps(dict(os.environ)))

    def about(self) -> Iterator[StepEvent]:
        yield TurnTaken(f"{self.model.routes} {os.getpid()} {[spec.name for spec in self.specs]}")

    def die(self) -> Iterator[StepEvent]:
        os.kill(os.getpid(), 9)
        yield TurnTaken("dead")

    def die_once(self, mark: str) -> Iterator[StepEvent]:
        if not Path(mark).exists():
            Path(mark).touch()
            sys.stderr.write("it dies of the key key-123\n")
            os.kill(os.getpid(), 9)
        yield from ()

    def late_settle(self) -> Iterator[StepEvent]:
        """Be in a request when the step is cancelled; what had arrived is settled."""
        reserved = self.door.reserve(self.model.claim_of("step", "m", 100, 1.0))
        assert not isinstance(reserved, Refused)
        yield TurnTaken("asking")
        self.model.stop.wait()
        self.door.settle(reserved.id, Usage(3, 1, 0.125))

    def fail(self, kind: str) -> Iterator[StepEvent]:
        faults: dict[str, BaseException] = {
            "environment": EnvironmentFaultError("no model at key-123"),
            "bug": ZeroDivisionError("key-123 by zero"),
            "exit": SystemExit(3),
        }
        yield TurnTaken("before")
        raise faults[kind]

    def odd(self) -> Iterator[StepEvent]:
        event: Any = TurnTaken({1})  # type: ignore[arg-type]
        yield event

    def settle_foreign(self) -> Iterator[StepEvent]:
        self.door.settle(4711, USAGE)
        yield TurnTaken("settled")

    def _call(self, ordinal: int, tool: str, arguments: Any) -> ToolCall:
        return ToolCall(
            self.request.session_id, self.request.loop_iteration, ordinal, tool, arguments
        )


def run_step(
    request: StepRequest, specs: tuple[ToolSpec, ...], door: Door, model: Model
) -> Iterator[StepEvent]:
    return Steps(request, specs, door, model).run()


def answer(question: Question, model: Model) -> Answered | Unanswered:
    if question.prompt == "hang":
        model.stop.wait()
    if question.prompt == "die":
        os.kill(os.getpid(), 9)
    if question.prompt == "fail":
        model.pay(question.purpose)
        raise ZeroDivisionError("by\nzero")
    if refused := model.pay(question.purpose):
        return Unanswered(refused.reason)
    return Answered(question.prompt.upper(), USAGE)


def embed(texts: Sequence[str], model: Model) -> tuple[tuple[float, ...], ...] | None:
    if model.pay("embed") is not None or "none" in texts:
        return None
    return tuple((float(len(text)), 1 / 3) for text in texts)


def load() -> None:
    if fault := os.environ.get("TEST_LOAD_FAULT"):
        raise ImportError(fault)


if __name__ == "__main__":
    main(Handlers(load, Model, run_step, answer, embed))
