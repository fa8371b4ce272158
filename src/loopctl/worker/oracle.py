"""Questions to a model outside of any step, asked of the same child that does the steps."""

from collections.abc import Sequence
from typing import Final

from loopctl.clock import Clock
from loopctl.contextports import Answered, Question, Unanswered
from loopctl.domain import GOAL, Limits
from loopctl.errors import EnvironmentFaultError
from loopctl.moneyports import Purse
from loopctl.worker.link import Lost, ModelProcess
from loopctl.worker.protocol import Embed, Failed, Reserve, Settle, ToEngine, Vectors
from loopctl.worker.till import PayersTill

LIMIT_S: Final = 1800.0
"""For one question; the model's own time limits come long before it."""

_CHILDREN: Final = 2


class ChildOracle:
    """The port ``Oracle``. Who made the process closes it.

    Args:
        run_id: Pays for embeddings, which belong to no task.
        is_there: A model is configured or was found.
    """

    def __init__(
        self, process: ModelProcess, purse: Purse, *, clock: Clock, run_id: str, is_there: bool
    ) -> None:
        self._process = process
        self._purse = purse
        self._clock = clock
        self._run_id = run_id
        self._is_there = is_there

    @property
    def is_there(self) -> bool:
        """A model is configured or was found."""
        return self._is_there

    def ask(self, question: Question) -> Answered | Unanswered:
        """Return the answer; money is put aside first and settled after.

        Raises:
            CancelledError: The run was asked to stop.
            StoreError: The harness's own database cannot be used.
        """
        till = PayersTill(self._purse, question.run_id, question.task, question.caps)
        match self._heard(question, till):
            case Answered() | Unanswered() as answer:
                return answer
            case str(reason):
                return Unanswered(" ".join(reason.split()), till.spent)
            case other:
                return Unanswered(f"a question was answered with {other!r}", till.spent)

    def embed(self, texts: Sequence[str]) -> tuple[tuple[float, ...], ...] | None:
        """Return a vector for each text; ``None`` where no model for that is set, or it failed.

        Raises:
            CancelledError: The run was asked to stop.
            StoreError: The harness's own database cannot be used.
        """
        till = PayersTill(self._purse, self._run_id, GOAL, Limits())
        heard = self._heard(Embed(tuple(texts)), till)
        return heard.vectors if isinstance(heard, Vectors) else None

    def _heard(self, work: Question | Embed, till: PayersTill) -> ToEngine | str:
        """Return the result, or why there is none; asked again once where the child died."""
        if not self._is_there:
            return "no model is configured and none was found; see `loop doctor`"
        reason = ""
        try:
            for _ in range(_CHILDREN):
                heard = self._attempt(work, till)
                if not isinstance(heard, Lost):
                    return heard
                reason = heard.reason
        except EnvironmentFaultError as exc:
            return str(exc)
        return reason

    def _attempt(self, work: Question | Embed, till: PayersTill) -> ToEngine | str | Lost:
        deadline = self._clock.monotonic() + LIMIT_S
        with self._process.talk(work, till.serve) as talk:
            while True:
                heard = talk.hear(deadline)
                if heard is None:
                    return f"there was no answer within {LIMIT_S:.0f} s"
                if isinstance(heard, Lost):
                    return heard
                match heard.body:
                    case Reserve() | Settle() as ask:
                        talk.answer(heard.ask, till.serve(ask))
                    case Failed(text=text):
                        return text
                    case result:
                        return result
