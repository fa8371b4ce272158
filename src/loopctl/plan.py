"""The plan of one candidate of one task, owned by the engine, and the checkpoint that carries it.

A checkpoint is bytes behind a 4-byte big-endian schema version:

* version 2: JSON of the plan, the tree of the worktree, the last observation, the context;
* version 1: JSON without a plan; decodes to one active todo whose text is the goal;
* anything newer is refused with :class:`~loopctl.errors.SchemaTooNewError`.

No keys and no raw transcripts are ever put in here.

Source: the loop's low-level design, "State model" (§4); versions from its checkpoint store.
"""

import json
import struct
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field, replace
from enum import StrEnum
from typing import Any, Final

from loopctl.domain import Axis, StopReason
from loopctl.errors import SchemaTooNewError

SCHEMA_VERSION: Final = 2
_HEADER: Final = struct.Struct(">I")


class TodoStatus(StrEnum):
    """Where one todo stands."""

    PENDING = "pending"
    ACTIVE = "active"
    DONE = "done"
    ABANDONED = "abandoned"


OPEN_TODOS: Final = frozenset({TodoStatus.PENDING, TodoStatus.ACTIVE})


class PlanStatus(StrEnum):
    """Where the plan stands; all but ``active`` are ends."""

    ACTIVE = "active"
    COMPLETE = "complete"
    STALLED = "stalled"
    BUDGET_EXHAUSTED = "budget_exhausted"


@dataclass(frozen=True, slots=True)
class Todo:
    """One sub-goal.

    Attributes:
        attempts: Steps that pursued it.
        summary: What it came to, once done; stands in for the transcript.
    """

    id: str
    text: str
    status: TodoStatus = TodoStatus.PENDING
    attempts: int = 0
    summary: str = ""


@dataclass(frozen=True, slots=True)
class StepProgress:
    """The signals of one step, on which stalls are judged.

    Attributes:
        produced_new_artifacts: The worktree's tree is one that this session has not had before.
        todo_completed: A todo was closed and the gate did not open it again.
        response_delta_hash: Equal for equal answers; empty where there was none.
        tree: The worktree's tree after the step.
        tool_calls_hash: Equal for equal sequences of calls; empty where there were none.
        gate_signature: Equal for equal type errors of a gate run; empty where there was none.
    """

    made_tool_calls: bool = False
    tool_calls_errored: bool = False
    produced_new_artifacts: bool = False
    todo_completed: bool = False
    response_delta_hash: str = ""
    tree: str = ""
    tool_calls_hash: str = ""
    gate_signature: str = ""


@dataclass(frozen=True, slots=True)
class Repeats:
    """How many steps in a row, the newest included, left a signal as it was.

    Counted apart from the ring of progress, which is no longer than the stall window.

    Attributes:
        tree: Steps whose tree equals that of the step before.
        tool_calls: Steps whose calls equal those of the step before; empty ones never count.
        type_error: Gate runs whose type errors equal those of the gate run before.
        type_errors: The newest gate run's errors, by which the next one is compared.
    """

    tree: int = 0
    tool_calls: int = 0
    type_error: int = 0
    type_errors: str = ""


@dataclass(frozen=True, slots=True)
class Budget:
    """What a task may spend and has spent. ``None`` as a cap means no cap."""

    loops_used: int = 0
    loops_max: int | None = None
    tokens_used: int = 0
    tokens_max: int | None = None
    wall_ms: int = 0
    wall_max_ms: int | None = None
    usd_used: float = 0.0
    usd_max: float | None = None


@dataclass(frozen=True, slots=True)
class Plan:
    """The ordered todos of one task and all that its end is judged on.

    Attributes:
        goal: The run's goal, verbatim.
        cursor: Index of the active todo; ``len(todos)`` when none is open.
        progress: The newest steps, no more than the stall window.
        repeats: The signals that are judged over more steps than that.
        replans: Accepted re-plans.
        stop: Why the plan ended; ``None`` while it is active.
    """

    goal: str
    todos: tuple[Todo, ...] = ()
    cursor: int = 0
    progress: tuple[StepProgress, ...] = ()
    repeats: Repeats = Repeats()
    replans: int = 0
    budget: Budget = field(default_factory=Budget)
    status: PlanStatus = PlanStatus.ACTIVE
    stop: StopReason | None = None

    @property
    def active(self) -> Todo | None:
        """The todo that the next step pursues."""
        return self.todos[self.cursor] if self.cursor < len(self.todos) else None

    @property
    def is_goal_met(self) -> bool:
        """At least one todo is done and none is open; an empty plan never counts."""
        states = [todo.status for todo in self.todos]
        return TodoStatus.DONE in states and OPEN_TODOS.isdisjoint(states)

    def with_todo(self, index: int, **changes: Any) -> "Plan":
        """Return the plan with one todo changed and the cursor on the first open one."""
        todos = list(self.todos)
        todos[index] = replace(todos[index], **changes)
        return replace(self, todos=tuple(todos)).with_cursor()

    def with_cursor(self) -> "Plan":
        """Return the plan with the first open todo active and the cursor on it."""
        first = next((i for i, t in enumerate(self.todos) if t.status in OPEN_TODOS), None)
        if first is None:
            return replace(self, cursor=len(self.todos))
        todos = list(self.todos)
        todos[first] = replace(todos[first], status=TodoStatus.ACTIVE)
        return replace(self, todos=tuple(todos), cursor=first)


def single_todo(goal: str, text: str, budget: Budget) -> Plan:
    """Return the plan of a command task or of relay mode: one active todo."""
    todo = Todo(id="1", text=text, status=TodoStatus.ACTIVE)
    return Plan(goal=goal, todos=(todo,), budget=budget)


@dataclass(frozen=True, slots=True)
class Checkpoint:
    """Everything from which a step can be taken again.

    Attributes:
        tree: Of the worktree after the step.
        base: The commit that the worktree was made from.
        observation: What the next step is shown: evidence of a gate or of a command.
        context: The compacted context of the task, text.
    """

    plan: Plan
    tree: str = ""
    base: str = ""
    observation: str = ""
    context: str = ""


def encode(checkpoint: Checkpoint) -> bytes:
    """Return the checkpoint as bytes of the current schema; equal values give equal bytes."""
    body = json.dumps(asdict(checkpoint), ensure_ascii=False, sort_keys=True, separators=(",", ":"))
    return _HEADER.pack(SCHEMA_VERSION) + body.encode("utf-8", "surrogatepass")


def decode(blob: bytes) -> Checkpoint:
    """Return the checkpoint that ``blob`` holds, of this schema or an older one.

    Raises:
        SchemaTooNewError: A newer version of ``loop`` wrote it.
        ValueError: It is no checkpoint.
    """
    if len(blob) < _HEADER.size:
        raise ValueError("a checkpoint begins with a 4-byte schema version")
    (version,) = _HEADER.unpack_from(blob)
    if version > SCHEMA_VERSION:
        raise SchemaTooNewError(version, SCHEMA_VERSION)
    body = json.loads(blob[_HEADER.size :].decode("utf-8", "surrogatepass"))
    if not isinstance(body, dict) or version < 1:
        raise ValueError("a checkpoint holds one JSON object")
    return _from_v1(body) if version == 1 else _from_v2(body)


def _from_v1(body: Mapping[str, Any]) -> Checkpoint:
    goal = str(body.get("goal", ""))
    return Checkpoint(
        plan=single_todo(goal, goal, Budget()),
        tree=str(body.get("tree", "")),
        base=str(body.get("base", "")),
        observation=str(body.get("observation", "")),
        context=str(body.get("context", "")),
    )


def _from_v2(body: Mapping[str, Any]) -> Checkpoint:
    try:
        raw = dict(body["plan"])
        stop = raw.pop("stop")
        plan = Plan(
            **{
                **raw,
                "todos": tuple(
                    Todo(**{**todo, "status": TodoStatus(todo["status"])}) for todo in raw["todos"]
                ),
                "progress": tuple(StepProgress(**step) for step in raw["progress"]),
                "repeats": Repeats(**raw["repeats"]),
                "budget": Budget(**raw["budget"]),
                "status": PlanStatus(raw["status"]),
            },
            stop=StopReason(Axis(stop["axis"]), stop["reason"]) if stop else None,
        )
        return Checkpoint(**{**body, "plan": plan})
    except (TypeError, KeyError) as exc:
        raise ValueError(f"a version {SCHEMA_VERSION} checkpoint has other fields: {exc}") from exc
