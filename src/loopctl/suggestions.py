"""The events of what workers assume and propose, and judges ask for; members of the union of ``events.py``."""

from typing import Literal

from loopctl.eventbase import Event


class AssumptionRecorded(Event):
    """A worker took something for granted."""

    type: Literal["assumption_recorded"] = "assumption_recorded"
    candidate: str
    text: str
    decision: str = ""


class TodoAdded(Event):
    """What a judge of prose has found becomes the next todo.

    Attributes:
        reason: What it has found, in a line.
    """

    type: Literal["todo_added"] = "todo_added"
    candidate: str
    todo: str
    reason: str


class TaskProposed(Event):
    """A worker has proposed a task; it is judged when the work on its own task has ended."""

    type: Literal["task_proposed"] = "task_proposed"
    candidate: str
    title: str
    prompt: str
    verify_cmd: str
    serves: str
    deps: tuple[str, ...] = ()


class ProposalJudged(Event):
    """A proposed task was added to the manifest, or was not.

    Attributes:
        added: The new task's id; empty where it was rejected.
        reason: Why it was rejected.
    """

    type: Literal["proposal_judged"] = "proposal_judged"
    title: str
    serves: str
    added: str = ""
    reason: str = ""
