"""Doubles for the ports of context, and an executor that runs when it is told to."""

from collections import deque
from collections.abc import Callable, Sequence
from concurrent.futures import Executor, Future
from dataclasses import dataclass, field
from typing import Any

from loopctl.contextports import Answered, Question, Unanswered
from loopctl.domain import Usage


@dataclass
class ScriptedOracle:
    """The port ``Oracle``: answers by a function and embeds by another, or does neither."""

    answer: Callable[[Question], str | None] | None = None
    vector: Callable[[str], tuple[float, ...]] | None = None
    asked: list[Question] = field(default_factory=list)
    embedded: list[tuple[str, ...]] = field(default_factory=list)

    @property
    def is_there(self) -> bool:
        """Whether it was given something to answer by."""
        return self.answer is not None

    def ask(self, question: Question) -> Answered | Unanswered:
        """Return what the function says; ``None`` is no answer."""
        self.asked.append(question)
        text = self.answer(question) if self.answer is not None else None
        return Unanswered("nothing was scripted") if text is None else Answered(text, Usage())

    def embed(self, texts: Sequence[str]) -> tuple[tuple[float, ...], ...] | None:
        """Return the function's vectors."""
        self.embedded.append(tuple(texts))
        return tuple(map(self.vector, texts)) if self.vector is not None else None


class HeldExecutor(Executor):
    """Runs what was submitted when :meth:`run_all` says so, in the caller's thread."""

    def __init__(self) -> None:
        self._waiting: deque[tuple[Future[Any], Callable[[], Any]]] = deque()
        self.is_shut = False

    def submit(self, fn: Callable[..., Any], /, *args: Any, **kwargs: Any) -> Future[Any]:
        """Put the call by."""
        future: Future[Any] = Future()
        self._waiting.append((future, lambda: fn(*args, **kwargs)))
        return future

    def run_all(self) -> int:
        """Make all calls that nobody has cancelled; return how many."""
        count = 0
        while self._waiting:
            future, call = self._waiting.popleft()
            if not future.set_running_or_notify_cancel():
                continue
            count += 1
            try:
                future.set_result(call())
            except BaseException as exc:  # noqa: BLE001 - who asks for the result gets it
                future.set_exception(exc)
        return count

    def shutdown(self, wait: bool = True, *, cancel_futures: bool = False) -> None:  # noqa: FBT001, FBT002 - Executor's own
        """Make what waits, or drop it."""
        del wait
        self.is_shut = True
        if cancel_futures:
            for future, _ in self._waiting:
                future.cancel()
        self.run_all()
