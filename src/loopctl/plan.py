"""The plan of one candidate of one task, owned by the engine, and the checkpoint that carries it.

A checkpoint is bytes behind a 4-byte big-endian schema version:

* version 4: JSON of the plan with its forks, the worktree's tree, the last observation, the past;
* version 3: no forks; 2: the past was one text, and reads as a summary of what was before all turns;
* version 1: JSON without a plan; decodes to one active todo whose text is the goal;
* anything newer is refused with :class:`~loopctl.errors.SchemaTooNewError`.

A step that is interrupted in its middle has a checkpoint of its own, an :class:`Interrupt`, under
a number that no iteration can have (:func:`interrupt_key`).

No keys and no raw transcripts are ever put in here.

Source: the loop's low-level design, "State model" (§4); versions from its checkpoint store.
"""

import base64
import json
import struct
from collections.abc import Callable, Mapping
from dataclasses import asdict, dataclass, field, replace
from enum import StrEnum
from typing import Any, Final

from loopctl.calls import ToolCall
from loopctl.domain import Axis, DecisionKind, StopReason
from loopctl.errors import SchemaTooNewError
from loopctl.forking import Forks, decode_forks
from loopctl.past import Past, Summary, decode_past, encode_past

SCHEMA_VERSION: Final = 4
_HEADER: Final = struct.Struct(">I")

_ITERATION_BITS: Final = 32
_ORDINAL_BITS: Final = 30

ITERATION_LIMIT: Final = 1 << _ITERATION_BITS
"""Every iteration is below it."""

INTERRUPT_FLAG: Final = 1 << (_ITERATION_BITS + _ORDINAL_BITS)
"""Set in the key of every interrupt checkpoint and of no other; the highest bit but the sign of
the 64 that SQLite has."""


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
        forks: Those that its steps have raised.
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
    forks: Forks = field(default_factory=Forks)

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
        past: What the candidate has been through.
        gate: As JSON, the evidence of a gate run that is not made again; empty where there is none.
    """

    plan: Plan
    tree: str = ""
    base: str = ""
    observation: str = ""
    past: Past = field(default_factory=Past)
    gate: str = ""


@dataclass(frozen=True, slots=True)
class CallDone:
    """A call of an interrupted step that has its result and must not be made again."""

    call_id: int
    tool: str
    content: str
    is_error: bool = False


@dataclass(frozen=True, slots=True)
class Interrupt:
    """A step that waits for a person in its middle, and all from which it goes on.

    Attributes:
        kind: What the person decides: ``approval`` or ``outcome``.
        call: The call that waits.
        checkpoint: The plan with what was spent so far; the tree at the interrupt, or the one
            before the step where ``blob`` is empty.
        blob: What the worker gave; empty where it takes the whole step again.
        done: The calls of the step that are finished.
        first_call: The ordinal of the step's first call.
        first_reply: The number of the step's first reply.
        paid: Replies of the step whose cost is in the checkpoint's plan.
        closed: The summary with which the step has closed the active todo, if it has.
        reason: Why a person is asked, one line.
        since: When the call was begun before; empty for an approval.
    """

    kind: DecisionKind
    call: ToolCall
    checkpoint: Checkpoint
    blob: bytes = b""
    done: tuple[CallDone, ...] = ()
    closed: str | None = None
    first_call: int = 0
    reason: str = ""
    since: str = ""
    first_reply: int = 0
    paid: int = 0


def interrupt_key(iteration: int, ordinal: int) -> int:
    """Return the number under which a step's interrupt checkpoint is saved.

    Args:
        iteration: Of the step that is interrupted.
        ordinal: From 0: which interrupt of that step.

    Raises:
        ValueError: One of them is out of range.
    """
    check_iteration(iteration)
    if not 0 <= ordinal < 1 << _ORDINAL_BITS:
        raise ValueError(f"interrupt {ordinal} of a step is out of range")
    return INTERRUPT_FLAG | ordinal << _ITERATION_BITS | iteration


def next_key(key: int) -> int:
    """Return the number of the same step's next interrupt."""
    iteration = key % ITERATION_LIMIT
    return interrupt_key(iteration, ((key ^ INTERRUPT_FLAG) >> _ITERATION_BITS) + 1)


def check_iteration(iteration: int) -> None:
    """Refuse a number that an interrupt checkpoint could have.

    Raises:
        ValueError: It is negative, or not below ``ITERATION_LIMIT``.
    """
    if not 0 <= iteration < ITERATION_LIMIT:
        raise ValueError(f"iteration {iteration} is out of range")


def encode(checkpoint: Checkpoint) -> bytes:
    """Return the checkpoint as bytes of the current schema; equal values give equal bytes."""
    return _pack(_body(checkpoint))


def encode_interrupt(interrupt: Interrupt) -> bytes:
    """Return the interrupt as bytes of the current schema; equal values give equal bytes."""
    body = asdict(interrupt) | {
        "blob": base64.b64encode(interrupt.blob).decode(),
        "checkpoint": _body(interrupt.checkpoint),
    }
    return _pack({"interrupt": body})


def rewritten(blob: bytes, change: Callable[[str], str]) -> bytes:
    """Return an encoded value whose JSON text is another; ``change`` returns JSON too."""
    head, text = blob[: _HEADER.size], blob[_HEADER.size :]
    return head + change(text.decode("utf-8", "surrogatepass")).encode("utf-8", "surrogatepass")


def decode(blob: bytes) -> Checkpoint:
    """Return the checkpoint that ``blob`` holds, of this schema or an older one.

    Raises:
        SchemaTooNewError: A newer version of ``loop`` wrote it.
        ValueError: It is no checkpoint.
    """
    version, body = _unpack(blob)
    return _from_v1(body) if version == 1 else _from_body(body, version)


def decode_interrupt(blob: bytes) -> Interrupt:
    """Return the interrupt that ``blob`` holds.

    Raises:
        SchemaTooNewError: A newer version of ``loop`` wrote it.
        ValueError: It is no interrupt.
    """
    version, body = _unpack(blob)
    try:
        raw = dict(body["interrupt"])
        raw["kind"] = DecisionKind(raw["kind"])
        raw["call"] = ToolCall(**raw["call"])
        raw["checkpoint"] = _from_body(raw["checkpoint"], version)
        raw["blob"] = base64.b64decode(raw["blob"], validate=True)
        raw["done"] = tuple(CallDone(**done) for done in raw["done"])
        return Interrupt(**raw)
    except (TypeError, KeyError) as exc:
        raise ValueError(f"an interrupt has other fields: {exc}") from exc


def _pack(body: Mapping[str, Any]) -> bytes:
    text = json.dumps(body, ensure_ascii=False, sort_keys=True, separators=(",", ":"))
    return _HEADER.pack(SCHEMA_VERSION) + text.encode("utf-8", "surrogatepass")


def _unpack(blob: bytes) -> tuple[int, Mapping[str, Any]]:
    if len(blob) < _HEADER.size:
        raise ValueError("a checkpoint begins with a 4-byte schema version")
    (version,) = _HEADER.unpack_from(blob)
    if version > SCHEMA_VERSION:
        raise SchemaTooNewError(version, SCHEMA_VERSION)
    body = json.loads(blob[_HEADER.size :].decode("utf-8", "surrogatepass"))
    if not isinstance(body, dict) or version < 1:
        raise ValueError("a checkpoint holds one JSON object")
    return version, body


def _body(checkpoint: Checkpoint) -> dict[str, Any]:
    """Return the past without the names of its fields, of which a long one would be full."""
    return asdict(checkpoint) | {"past": encode_past(checkpoint.past)}


def _past_of_text(context: str) -> Past:
    return Past(summaries=(Summary(0, 0, context),)) if context else Past()


def _from_v1(body: Mapping[str, Any]) -> Checkpoint:
    goal = str(body.get("goal", ""))
    return Checkpoint(
        plan=single_todo(goal, goal, Budget()),
        tree=str(body.get("tree", "")),
        base=str(body.get("base", "")),
        observation=str(body.get("observation", "")),
        past=_past_of_text(str(body.get("context", ""))),
    )


def _from_body(body: Mapping[str, Any], version: int) -> Checkpoint:
    try:
        raw = dict(body)
        is_text = version == 2  # noqa: PLR2004 - the version whose past was one text
        past = _past_of_text(raw.pop("context")) if is_text else decode_past(raw["past"])
        return Checkpoint(**{**raw, "plan": _plan(raw["plan"]), "past": past})
    except (TypeError, KeyError) as exc:
        raise ValueError(f"a version {version} checkpoint has other fields: {exc}") from exc


def _plan(body: Mapping[str, Any]) -> Plan:
    todos = [Todo(**{**one, "status": TodoStatus(one["status"])}) for one in body["todos"]]
    stop = body["stop"]
    changed = {
        "todos": tuple(todos),
        "progress": tuple(StepProgress(**step) for step in body["progress"]),
        "repeats": Repeats(**body["repeats"]),
        "budget": Budget(**body["budget"]),
        "status": PlanStatus(body["status"]),
        "stop": StopReason(Axis(stop["axis"]), stop["reason"]) if stop else None,
        "forks": decode_forks(body["forks"]) if "forks" in body else Forks(),
    }
    return Plan(**{**body, **changed})
