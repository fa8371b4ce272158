"""What is kept and handed on between the parts: runs, sessions, candidates, the capsule."""

from dataclasses import dataclass
from typing import TYPE_CHECKING

from loopctl.domain import DecisionDraft, RunStatus, Scope, Sha, Task, TaskId

if TYPE_CHECKING:
    from loopctl.plan import Checkpoint, Interrupt


@dataclass(frozen=True, slots=True)
class RunRecord:
    """A run as the store knows it.

    Attributes:
        settings_json: The settings frozen at its start.
        verify_cmd: Replaces the verify command of every task, where one was given.
        is_wip: ``base`` is a snapshot of the checkout's uncommitted changes.
    """

    id: str
    status: RunStatus
    goal: str
    base: Sha
    branch: str
    started: str
    scope: Scope
    settings_json: str
    settings_hash: str
    verify_cmd: str | None = None
    is_wip: bool = False
    ended: str | None = None


@dataclass(frozen=True, slots=True)
class Most:
    """What a command and all that comes of it may take together.

    Attributes:
        processes: And threads, at the same time.
        memory_bytes: In use, what is swapped out included.
    """

    processes: int
    memory_bytes: int


@dataclass(frozen=True, slots=True)
class Confined:
    """A command line that runs a command confined.

    Attributes:
        argv: Program and arguments.
        has_keeper: Its first process only keeps the others inside and takes them along when it
            ends: those are asked to end, and not it.
        most: What they may take together; ``None`` where nobody looks.
    """

    argv: tuple[str, ...]
    has_keeper: bool = False
    most: Most | None = None


@dataclass(frozen=True, slots=True)
class SessionRecord:
    """One candidate of one task in one run.

    Attributes:
        iteration: The last step that came to its end; 0 before the first.
        checkpoint: Saved at its end.
        interrupt: Of the step after it, where that waits for a person.
    """

    id: str
    run_id: str
    task: TaskId
    candidate: str
    base: Sha
    iteration: int
    checkpoint: "Checkpoint | None"
    interrupt: "Interrupt | None" = None

    @property
    def newest(self) -> "Checkpoint | None":
        """From which the session goes on: its interrupt's, else that of its last whole step."""
        return self.interrupt.checkpoint if self.interrupt is not None else self.checkpoint


@dataclass(frozen=True, slots=True)
class Landed:
    """A commit of the integration branch that this harness made, read from its trailers."""

    commit: Sha
    task: TaskId
    run_id: str
    key: str


@dataclass(frozen=True, slots=True)
class Carried:
    """A diff on another head.

    Attributes:
        tree: The resulting tree; ``None`` when it does not apply cleanly.
        detail: git's own words where it does not.
    """

    tree: str | None
    detail: str = ""


@dataclass(frozen=True, slots=True)
class Rescued:
    """What became of the files of a step that was cut short.

    Attributes:
        ref: Keeps them; empty where they hold nothing that is not kept already.
        folder: Where files are left that could not be saved; empty where all were.
        why: What kept them from being saved.
    """

    ref: str = ""
    folder: str = ""
    why: str = ""

    @property
    def is_complete(self) -> bool:
        """All files are kept, or there were none."""
        return not self.folder


@dataclass(frozen=True, slots=True)
class Candidate:
    """What a gate judges: the diff from ``base`` to ``tree``, to be applied to ``head``.

    Attributes:
        name: The option's name, or ``"main"``.
        left_out: In words, what was written but is no part of ``tree``, where that is a reason
            for the diff to be empty.
        is_draft: Of a prose task: its critic is asked, and it does not land.
    """

    task: Task
    name: str
    base: Sha
    tree: str
    head: Sha
    left_out: str = ""
    is_draft: bool = False


@dataclass(frozen=True, slots=True)
class DeferredTask:
    """A deferred task as it stands in the capsule."""

    task_id: str
    question: str
    best_guess: str = ""
    answer: str | None = None


@dataclass(frozen=True, slots=True)
class Supposition:
    """What was assumed where a goal was not clear and nobody answered.

    Attributes:
        draft: The question; its best guess is what was assumed.
        tasks: Those that rest on it.
    """

    draft: DecisionDraft
    tasks: tuple[TaskId, ...]


@dataclass(frozen=True, slots=True)
class Capsule:
    """The durable thread of a run: what is re-read after any crash, clear or answer.

    Attributes:
        goal: Verbatim; byte-identical wherever it is copied.
        current_step: The exact next action, written before it is begun.
        verify_cmd: How to confirm the next step before it begins.
    """

    goal: str
    current_step: str = ""
    key_decisions: tuple[str, ...] = ()
    verify_cmd: str = ""
    deferred_tasks: tuple[DeferredTask, ...] = ()
    open_questions: tuple[str, ...] = ()
    assumptions: tuple[str, ...] = ()
