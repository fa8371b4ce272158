"""The protocols of context: how the past is kept short, what is recalled, who writes summaries."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Final, Protocol

from loopctl.domain import Limits, Usage
from loopctl.moneyports import Refused
from loopctl.past import Past
from loopctl.records import Capsule

_NO_CAPS: Final = Limits()


@dataclass(frozen=True, slots=True)
class Memory:
    """Something that was recalled.

    Attributes:
        source: Where it is from: a path of the tree, or ``run RUN, task TASK``.
        text: An excerpt.
        score: Merged rank; larger is nearer.
    """

    source: str
    text: str
    score: float


@dataclass(frozen=True, slots=True)
class Question:
    """Something to ask a model once, without tools: a summary, a judgment.

    Attributes:
        purpose: ``summary``, ``judge``, ...: for the money's ledger and the report.
        task: The task that pays, or ``@goal``.
        tier: ``cheap``, ``standard`` or ``premium``.
        answer: A JSON schema of an object that the answer must be; ``None`` for plain text.
    """

    purpose: str
    run_id: str
    task: str
    tier: str
    system: str
    prompt: str
    answer: Mapping[str, Any] | None = None
    max_output_tokens: int = 1024
    caps: Limits = field(default_factory=Limits)


@dataclass(frozen=True, slots=True)
class Answered:
    """What the model said: ``text`` is JSON that fits the question's schema where it has one."""

    text: str
    usage: Usage


@dataclass(frozen=True, slots=True)
class Unanswered:
    """There is no answer, and why: no model, no money, nonsense again and again. One line.

    Attributes:
        refused: The cap that it would have passed, where that is the reason.
    """

    reason: str
    usage: Usage = field(default_factory=Usage)
    refused: Refused | None = None


class Oracle(Protocol):
    """Asks a model outside of any step; blocks; any thread may call it."""

    @property
    def is_there(self) -> bool:
        """A model is configured or was found."""
        ...

    def ask(self, question: Question) -> Answered | Unanswered:
        """Return the answer; money is put aside first and settled after.

        Raises:
            CancelledError: The run was asked to stop.
        """
        ...

    def embed(self, texts: Sequence[str]) -> tuple[tuple[float, ...], ...] | None:
        """Return a vector for each text; ``None`` where no model for that is set, or it failed."""
        ...


class Compactor(Protocol):
    """Keeps a past short: summaries are made ahead, beside the work.

    One for a run. A candidate's past is tended before each of its steps.
    """

    def tend(self, session_id: str, task: str, past: Past, caps: Limits = _NO_CAPS) -> Past:
        """Return the past with the summaries that are ready; begin the next where it is time.

        Blocks, and summarises in line, only where the past no longer fits the window.

        Args:
            session_id: Of the candidate; one thread at a time tends its past.
            task: Which pays.
            past: What it returned the last time, and the turns taken since.
            caps: Of the task, with what its answers have raised.

        Raises:
            CancelledError: The run was asked to stop.
        """
        ...

    def close(self) -> None:
        """End what is under way; nothing of it is kept.

        Waits for a question that was asked already, so that what it costs is settled.
        """
        ...


@dataclass(frozen=True, slots=True)
class Passage:
    """A piece of text to be found again; ``source`` as in :class:`Memory`."""

    source: str
    text: str


@dataclass(frozen=True, slots=True)
class Document:
    """What is put into the index and taken out of it as one.

    Attributes:
        key: Unique: ``file:PATH`` or ``run:RUN``.
        version: Changes with the contents.
    """

    key: str
    version: str
    passages: tuple[Passage, ...]


class MemoryIndex(Protocol):
    """An index that follows from what it was made of, and may be made anew at any time.

    Every method raises :class:`~loopctl.errors.StoreError` where it cannot be used as it is; then
    :meth:`reset` helps.
    """

    def versions(self) -> Mapping[str, str]:
        """Return the documents that it holds, key to version."""
        ...

    def replace(self, documents: Sequence[Document], gone: Sequence[str] = ()) -> None:
        """Take these documents in, each in place of its older version, and drop ``gone``."""
        ...

    def search(self, terms: Sequence[str], limit: int) -> tuple[Passage, ...]:
        """Return the passages that hold any of the terms, whatever is in these, best first."""
        ...

    def without_vector(self, model: str, limit: int) -> Mapping[str, str]:
        """Return some passages that lack a vector of that model: digest of the text, text."""
        ...

    def keep_vectors(self, model: str, vectors: Mapping[str, Sequence[float]]) -> None:
        """Remember vectors by digest of the text, for as long as some passage has that text."""
        ...

    def nearest(self, model: str, vector: Sequence[float], limit: int) -> tuple[Passage, ...]:
        """Return the passages whose vectors are nearest by their angle, and near at all."""
        ...

    def reset(self) -> None:
        """Forget everything; what comes after works, where need be in memory alone."""
        ...


class History(Protocol):
    """What earlier runs have left to know."""

    def versions(self) -> Mapping[str, str]:
        """Return the runs that are over, key to version; cheap."""
        ...

    def passages(self, key: str) -> tuple[Passage, ...]:
        """Return what one run says, a passage of any length for each of its tasks."""
        ...


class Recall(Protocol):
    """Finds what may matter: in the repository, in earlier runs."""

    def recall(self, query: str, limit: int) -> tuple[Memory, ...]:
        """Return at most ``limit`` memories, the nearest first; none where nothing fits."""
        ...


class Brain(Protocol):
    """The context port: rebuilds the thread from what is on disk."""

    def boot(self) -> Capsule:
        """Return the capsule as it is on disk; opens every iteration."""
        ...

    def carry(self, capsule: Capsule) -> None:
        """Write the capsule, atomically; follows each gate pass and each deferral."""
        ...

    def update(self, change: Callable[[Capsule], Capsule]) -> None:
        """Carry what ``change`` makes of the booted capsule; one change at a time."""
        ...
