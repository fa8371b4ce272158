from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import pytest

from loopctl.domain import (
    DecisionDraft,
    DecisionKind,
    ExecResult,
    Goal,
    Option,
    Sha,
    Task,
    TaskId,
)
from loopctl.plan import Budget
from loopctl.ports import (
    Deferred,
    ForkRaised,
    MessageMalformed,
    OutputTail,
    StepEvent,
    StepRequest,
    TodoDone,
    WorkerProgress,
)
from loopctl.testing import MemorySandbox
from loopctl.worker.command import CommandWorker

DRAFT = DecisionDraft(DecisionKind.EXTERNAL, "Which?")


class Room(MemorySandbox):
    """A sandbox whose command ends as told, with messages left as told."""

    def __init__(self, result: ExecResult, *messages: Any) -> None:
        super().__init__("room", Sha("c1"), "tree")
        self.result = result
        self.left = messages
        self.ran: list[tuple[str, Mapping[str, str], float]] = []
        self.offered: list[str] = []

    def run(
        self,
        command: str | Sequence[str],
        *,
        timeout_s: float,
        env: Mapping[str, str] | None = None,
    ) -> ExecResult:
        self.ran.append((str(command), env or {}, timeout_s))
        return self.result

    def exchange(self) -> Any:
        room = self

        class Folder:
            def __init__(self) -> None:
                self.env = {"LOOP_OUTBOX": "/out", "LOOP_OBSERVATION": "/obs"}

            def offer(self, observation: str) -> None:
                room.offered.append(observation)

            def messages(self) -> Iterator[Any]:
                yield from room.left

        return Folder()


def request(**keys: Any) -> StepRequest:
    task = Task(id=TaskId("T1"), title="t", command="make it")
    fields: dict[str, Any] = {
        "session_id": "s",
        "loop_iteration": 1,
        "step_goal": "the todo",
        "goal": Goal("g"),
        "task": task,
        "run_id": "r1",
        **keys,
    }
    return StepRequest(**fields)


def events(room: Room, **keys: Any) -> list[StepEvent]:
    return list(CommandWorker().execute_step(request(**keys), room))


OK = ExecResult(0, b"fine\n")


def test_exit_0_closes_the_todo_and_progress_comes_last() -> None:
    found = events(Room(OK))
    assert [type(event) for event in found] == [OutputTail, TodoDone, WorkerProgress]
    assert found[0] == OutputTail(0, "`make it` ended with exit code 0; its output ends:\nfine")


def test_other_exits_are_an_observation_and_close_nothing() -> None:
    found = events(Room(ExecResult(3, b"no\n")))
    assert [type(event) for event in found] == [OutputTail, WorkerProgress]
    assert found[1] == WorkerProgress(
        made_tool_calls=True,
        tool_calls_errored=True,
        response_delta_hash=found[1].response_delta_hash,  # type: ignore[union-attr]
    )


@pytest.mark.parametrize(
    ("result", "is_environment"),
    [
        (ExecResult(127), True),
        (ExecResult(126), True),
        (ExecResult(-9), True),
        (ExecResult(-15, timed_out=True), False),
        (ExecResult(1), False),
    ],
)
def test_command_that_never_had_its_chance_is_the_environments_fault(
    result: ExecResult,
    is_environment: bool,  # noqa: FBT001 - a parametrized value
) -> None:
    tail = events(Room(result))[0]
    assert isinstance(tail, OutputTail)
    assert tail.is_environment is is_environment


def test_command_sees_task_run_todo_answer_and_the_exchange() -> None:
    room = Room(OK)
    events(room, answer="use blue", observation="red before")
    ((command, env, _),) = room.ran
    assert command == "make it"
    assert env == {
        "LOOP_TASK": "T1",
        "LOOP_RUN": "r1",
        "LOOP_STEP_GOAL": "the todo",
        "LOOP_ANSWER": "use blue",
        "LOOP_OUTBOX": "/out",
        "LOOP_OBSERVATION": "/obs",
    }
    assert room.offered == ["red before"]


def test_no_answer_is_no_variable() -> None:
    room = Room(OK)
    events(room)
    assert "LOOP_ANSWER" not in room.ran[0][1]


def test_option_may_have_its_own_command() -> None:
    room = Room(OK)
    events(room, option=Option("fast", command="make fast"))
    events(room, option=Option("plain"))
    assert [command for command, _, _ in room.ran] == ["make fast", "make it"]


def test_command_may_take_what_is_left_of_the_wall_budget() -> None:
    room = Room(OK)
    events(room, budget=Budget(wall_ms=4000, wall_max_ms=10_000))
    assert room.ran[0][2] == 6.0


@pytest.mark.parametrize("message", [Deferred(DRAFT), ForkRaised("?", "scope", ())])
def test_command_that_asks_does_not_close_its_todo(message: StepEvent) -> None:
    found = events(Room(OK, message))
    assert message in found
    assert not any(isinstance(event, TodoDone) for event in found)


def test_summary_is_taken_from_the_message_and_only_where_the_command_succeeds() -> None:
    done = TodoDone("all of it")
    assert [event for event in events(Room(OK, done)) if isinstance(event, TodoDone)] == [done]
    assert done not in events(Room(ExecResult(1), done))


def test_malformed_message_is_passed_on() -> None:
    assert MessageMalformed("bad") in events(Room(OK, MessageMalformed("bad")))


def test_equal_output_gives_equal_hashes_and_the_exit_code_counts() -> None:
    def digest(result: ExecResult) -> str:
        last = events(Room(result))[-1]
        assert isinstance(last, WorkerProgress)
        return last.response_delta_hash

    assert digest(ExecResult(1, b"x")) == digest(ExecResult(1, b"x"))
    assert digest(ExecResult(1, b"x")) != digest(ExecResult(2, b"x"))
    assert digest(ExecResult(1, b"x")) != digest(ExecResult(1, b"y"))


def test_output_that_is_no_text_is_made_text() -> None:
    tail = events(Room(ExecResult(1, b"\xff\x00\xfe")))[0]
    assert isinstance(tail, OutputTail)
    tail.text.encode()


def test_long_commands_are_named_by_their_first_line() -> None:
    task = Task(id=TaskId("T1"), title="t", command="first\nsecond\n")
    tail = events(Room(OK), task=task)[0]
    assert isinstance(tail, OutputTail)
    assert tail.text.startswith("`first …` ended")


def test_worker_keeps_nothing_between_steps() -> None:
    assert vars(CommandWorker()) == {}
    assert Path("/nowhere/room") == Room(OK).workdir
