"""One request and its money: put aside before it leaves, settled whatever comes of it."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from loopctl.clock import Clock
from loopctl.domain import Limits, Usage
from loopctl.errors import CancelledError
from loopctl.moneyports import Claim, Refused
from loopctl.redaction import Redactor
from loopctl.worker.door import Till
from loopctl.worker.model.count import count_prompt, count_text
from loopctl.worker.model.failures import Failure, failure_of
from loopctl.worker.model.patience import Stop
from loopctl.worker.model.prices import usd_of, usd_of_usage
from loopctl.worker.model.reply import Message
from loopctl.worker.model.routes import Attempt
from loopctl.worker.model.wire import Manner, Pieces, access, send

ClaimOf = Callable[[str, str, int, float | None], Claim]
"""Makes a claim of a purpose, a model string, tokens and US dollars (``None`` where unknown)."""


def claims_of(run_id: str, task: str, caps: Limits | None = None) -> ClaimOf:
    """Return what makes the claims of a task, or of ``@goal``, within its caps."""

    def claim(purpose: str, model: str, tokens: int, usd: float | None) -> Claim:
        return Claim(run_id, task, purpose, model, tokens, usd, caps or Limits())

    return claim


@dataclass(frozen=True, slots=True)
class Asked:
    """What is sent: clean messages, function tools; and what for."""

    messages: Sequence[Message]
    tools: Sequence[Mapping[str, Any]]
    purpose: str


@dataclass(frozen=True, slots=True)
class Paid:
    """What one request came to, and what was settled for it."""

    result: Pieces | Failure
    usage: Usage


class Cashier:
    """Makes requests that are paid for.

    Args:
        till: Where the money is.
        claim_of: Says who pays.
        env: Where the keys are; looked up for each request.
        redact: Takes keys out of texts.
        clock: For dates in ``Retry-After``.
        stop: Ends a reply that is on its way.
    """

    def __init__(
        self,
        till: Till,
        claim_of: ClaimOf,
        env: Mapping[str, str],
        redact: Redactor,
        clock: Clock,
        stop: Stop,
    ) -> None:
        self._till = till
        self._claim_of = claim_of
        self._env = env
        self._redact = redact
        self._clock = clock
        self._stop = stop

    def ask(
        self, attempt: Attempt, asked: Asked, manner: Manner, output_tokens: int, request_s: float
    ) -> Paid | Refused:
        """Make one request.

        A failed one is settled to nothing where the provider surely bills nothing: it answered
        with an error, or was never reached. Else its counted prompt is paid for, and what had
        arrived of the reply.

        Raises:
            CancelledError: The run was asked to stop; what had arrived is settled.
        """

        def make(pieces: Pieces) -> None:
            send(
                access(attempt, self._env),
                asked.messages,
                asked.tools,
                manner,
                output_tokens=output_tokens,
                request_s=request_s,
                into=pieces,
                is_stopped=self._stop.is_set,
            )

        prompt_tokens = count_prompt(attempt.model, asked.messages, asked.tools)
        return self.pay(attempt, asked.purpose, prompt_tokens, output_tokens, make)

    def pay(
        self,
        attempt: Attempt,
        purpose: str,
        prompt_tokens: int,
        output_tokens: int,
        make: Callable[[Pieces], None],
    ) -> Paid | Refused:
        """Make a request of any kind, as :meth:`ask` does.

        Args:
            attempt: The model.
            purpose: For the money's ledger.
            prompt_tokens: Counted.
            output_tokens: The limit.
            make: Makes the request and puts what comes back into the pieces it is given.
        """
        usd = usd_of(attempt, prompt_tokens, output_tokens)
        claim = self._claim_of(purpose, attempt.model, prompt_tokens + output_tokens, usd)
        reserved = self._till.reserve(claim)
        if isinstance(reserved, Refused):
            return reserved
        pieces = Pieces()
        failure: Failure | None = None
        is_billed = True
        try:
            make(pieces)
        except CancelledError:
            raise
        except Exception as exc:  # noqa: BLE001  # adapters of a hundred providers raise anything
            failure = failure_of(exc, attempt, self._redact, self._clock.now())
            is_billed = failure.is_billed
        finally:
            usage = self._cost(attempt, pieces, prompt_tokens) if is_billed else Usage()
            self._till.settle(reserved.id, usage)
        return Paid(failure or pieces, usage)

    @staticmethod
    def _cost(attempt: Attempt, pieces: Pieces, prompt_tokens: int) -> Usage:
        found = pieces.usage
        prompt = found.prompt_tokens if found is not None else prompt_tokens
        written = (
            found.completion_tokens
            if found is not None
            else count_text(attempt.model, pieces.written)
        )
        return Usage(prompt, written, usd_of_usage(attempt, found, prompt, written))
