from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, TypeVar

import pytest

from loopctl.calls import ToolSpec
from loopctl.domain import Goal, Task, TaskId
from loopctl.steps import StepEvent, StepRequest
from loopctl.testing import StillClock
from loopctl.testing.steps import Came, ScriptedDoor, StagedModel
from loopctl.worker.work import run_step

Event = TypeVar("Event")


def spec(name: str, **properties: Mapping[str, Any]) -> ToolSpec:
    schema = {
        "type": "object",
        "properties": properties,
        "required": list(properties),
        "additionalProperties": False,
    }
    return ToolSpec(name, f"The tool {name}.", schema)


SPECS = (
    spec("bash", command={"type": "string"}),
    spec("read_file", path={"type": "string"}),
    spec("write_file", path={"type": "string"}, content={"type": "string"}),
    spec("push", branch={"type": "string"}),
)


def make_request(**changes: Any) -> StepRequest:
    fields: dict[str, Any] = {
        "session_id": "r1/T1/main",
        "loop_iteration": 3,
        "step_goal": "write the parser",
        "goal": Goal("Ship the importer"),
        "task": Task(id=TaskId("T1"), title="Parse the header"),
        "run_id": "r1",
        **changes,
    }
    return StepRequest(**fields)


@dataclass
class Played:
    events: list[StepEvent]
    door: ScriptedDoor
    model: StagedModel

    def of(self, kind: type[Event]) -> list[Event]:
        return [event for event in self.events if isinstance(event, kind)]

    def only(self, kind: type[Event]) -> Event:
        (event,) = self.of(kind)
        return event

    @property
    def names(self) -> list[str]:
        return [type(event).__name__ for event in self.events]

    def told(self, number: int = -1) -> list[str]:
        """Results and notes that the model was shown in its request ``number``."""
        messages = self.model.asked[number].messages
        first = next(i for i, m in enumerate(messages) if m["role"] == "assistant")
        return [m["content"] for m in messages[first:] if m["role"] != "assistant"]


Play = Callable[..., Played]


@pytest.fixture
def request_of() -> Callable[..., StepRequest]:
    return make_request


@pytest.fixture
def specs() -> tuple[ToolSpec, ...]:
    return SPECS


@pytest.fixture
def spec_of() -> Callable[..., ToolSpec]:
    return spec


@pytest.fixture
def play() -> Play:
    """Run one step on a scripted model, to its end."""

    def run(
        *script: Came,
        door: ScriptedDoor | None = None,
        specs: Sequence[ToolSpec] = SPECS,
        clock: StillClock | None = None,
        **changes: Any,
    ) -> Played:
        door = door or ScriptedDoor()
        model = StagedModel(script)
        step = run_step(make_request(**changes), tuple(specs), door, model, clock or StillClock())
        return Played(list(step), door, model)

    return run
