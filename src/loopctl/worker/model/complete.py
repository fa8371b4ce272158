"""The model of a run: retries, then fallbacks, then a reason; each request paid for.

A wait for a provider that limits its rate is part of one call, so it costs no step.
"""

from collections.abc import Mapping, Sequence
from dataclasses import replace

from loopctl.calls import ToolSpec
from loopctl.clock import Clock
from loopctl.domain import Usage
from loopctl.moneyports import Refused
from loopctl.redaction import Redactor
from loopctl.worker.model.embed import Embedder, Vectors
from loopctl.worker.model.failures import Failure, FailureKind
from loopctl.worker.model.paid import Asked, Cashier, Paid
from loopctl.worker.model.patience import Patience, Stop, Waits
from loopctl.worker.model.reply import Message, NoMoney, Overflow, Reply, Unavailable
from loopctl.worker.model.routes import Attempt, Routes
from loopctl.worker.model.wire import Manner, Pieces, clean, function_tools


class LiteModel:
    """The port ``Model``, by LiteLLM. Holds no key; any thread may use it.

    Args:
        routes: Which models serve which tier.
        env: Where the keys are, by the names that the routes have; read for each request.
        cashier: Pays for each request, retries included.
        clock: For how long it has taken so far.
        stop: The run was asked to stop; wakes a wait. ``threading.Event`` is one.
        patience: The bounds.
        max_output_tokens: Less than the settings allow, where it is given.
    """

    def __init__(
        self,
        routes: Routes,
        env: Mapping[str, str],
        cashier: Cashier,
        *,
        clock: Clock,
        stop: Stop,
        patience: Patience,
        max_output_tokens: int | None = None,
    ) -> None:
        self._routes = routes
        self._env = env
        self._cashier = cashier
        self._redact = Redactor(env, routes.key_names)
        self._clock = clock
        self._stop = stop
        self._patience = patience
        self._max_output_tokens = max_output_tokens
        self._manners: dict[tuple[Attempt, bool], Manner] = {}

    def limited(self, output_tokens: int) -> "LiteModel":
        """Return the same with a limit of its own for what a reply may have."""
        return LiteModel(
            self._routes,
            self._env,
            self._cashier,
            clock=self._clock,
            stop=self._stop,
            patience=self._patience,
            max_output_tokens=output_tokens,
        )

    def embed(self, texts: Sequence[str]) -> Vectors | None:
        """Return a vector for each text; ``None`` where no model for that is set, or it failed.

        Raises:
            CancelledError: The run was asked to stop.
        """
        attempt = self._routes.embed
        if attempt is None:
            return None
        waits = Waits(self._patience, self._clock, self._stop)
        return Embedder(attempt, self._env, self._cashier, self._patience, waits).embed(texts)

    def complete(
        self,
        tier: str,
        messages: Sequence[Message],
        tools: Sequence[ToolSpec],
        *,
        purpose: str,
        must_call: bool = False,
    ) -> Reply | Overflow | NoMoney | Unavailable:
        """Return a whole reply; its usage is that of all requests which the call took.

        A model that says nothing is asked once more; then an empty reply comes back. Arguments
        of calls are handed on as the model wrote them. A refusal has the finish
        ``content_filter``.

        Raises:
            CancelledError: The run was asked to stop.
        """
        attempts = self._routes.of(tier)
        if self._routes.reason or not attempts:
            reason = self._routes.reason or f"no model serves the tier {tier!r}: name it otherwise"
            return Unavailable(reason)
        asked = Asked(clean(messages), clean(function_tools(tools)), purpose)
        waits = Waits(self._patience, self._clock, self._stop)
        spent = Usage()
        reasons: list[str] = []
        for attempt in attempts:
            trying = _Trying(self._cashier, self._patience, waits, spent)
            known = Manner(is_forced=must_call and bool(tools))
            manner = self._manners.get((attempt, known.is_forced), known)
            outcome = trying.ask(attempt, asked, manner, self._limit(attempt))
            spent = trying.spent
            if isinstance(outcome, Refused):
                # A fallback whose price nobody knows is only one model less.
                if outcome.cap is not None or not reasons:
                    return NoMoney(outcome.cap, outcome.reason, outcome.needed)
                reasons.append(outcome.reason)
            elif isinstance(outcome, Failure):
                if outcome.kind is FailureKind.OVERFLOW:
                    return Overflow(outcome.text)
                reasons.append(outcome.text)
            else:
                self._manners[attempt, known.is_forced] = trying.manner
                return self._reply(outcome, attempt, spent)
        return Unavailable("; ".join(dict.fromkeys(reasons)))

    def _reply(self, pieces: Pieces, attempt: Attempt, spent: Usage) -> Reply:
        """Return the reply without keys: what is kept of it and what is done must be the same."""
        calls = tuple(
            replace(call, arguments=self._redact.document(call.arguments)) for call in pieces.calls
        )
        finish = pieces.finish or "stop"
        return Reply(self._redact(pieces.text), calls, spent, attempt.model, finish)

    def _limit(self, attempt: Attempt) -> int:
        given = self._max_output_tokens
        return attempt.max_output_tokens if given is None else min(given, attempt.max_output_tokens)


class _Trying:
    """The tries of one model.

    Attributes:
        spent: What all requests of the call have cost so far.
        manner: The one that worked.
    """

    def __init__(self, cashier: Cashier, patience: Patience, waits: Waits, spent: Usage) -> None:
        self._cashier = cashier
        self._patience = patience
        self._waits = waits
        self.spent = spent
        self.manner = Manner()
        self._failed = 0
        self._empty = 0

    def ask(
        self, attempt: Attempt, asked: Asked, manner: Manner, output_tokens: int
    ) -> Pieces | Failure | Refused:
        """Return a reply, or the last failure; a plainer manner is no retry but a step of its own."""
        self.manner = manner
        while True:
            self._waits.go_on()
            paid = self._cashier.ask(
                attempt, asked, self.manner, output_tokens, self._patience.request_s
            )
            if not isinstance(paid, Paid):
                return paid
            self.spent += paid.usage
            if not self._is_worth_another(paid.result):
                return paid.result

    def _is_worth_another(self, result: Pieces | Failure) -> bool:
        """Make ready for the next request, waiting for its time; false where there is none."""
        if isinstance(result, Pieces):
            self._empty += 1
            if not result.is_empty or self._empty >= self._patience.empty_tries:
                return False
            # A stream has no place for some things that a whole reply has: a refusal.
            self.manner = replace(self.manner, is_streamed=False)
            return True
        if result.kind is FailureKind.REQUEST:
            plainer = self.manner.plainer()
            self.manner = plainer or self.manner
            return plainer is not None
        if result.kind is not FailureKind.PASSING:
            return False
        if result.is_broken:
            self.manner = replace(self.manner, is_streamed=False)
        self._failed += 1
        if result.is_refused and self._failed >= self._patience.refused_tries:
            return False
        return self._waits.before_another(self._failed, result.retry_after_s)
