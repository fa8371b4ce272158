"""Vectors for texts, by the model that the settings name for it; paid for like any request."""

from collections.abc import Mapping, Sequence
from typing import Any, Final

from loopctl.worker.model.count import count_text
from loopctl.worker.model.failures import FailureKind
from loopctl.worker.model.lite import library
from loopctl.worker.model.paid import Cashier, Paid
from loopctl.worker.model.patience import Patience, Waits
from loopctl.worker.model.routes import Attempt
from loopctl.worker.model.wire import Pieces, access, clean, patience_of

PURPOSE: Final = "embed"
BATCH: Final = 64
"""Texts of one request."""
MAX_CHARACTERS: Final = 12_000
"""Of a text, of which models take 8000 tokens at most; the rest says little more of what it is."""

Vectors = tuple[tuple[float, ...], ...]


class Embedder:
    """Asks a model for vectors, once.

    Args:
        attempt: Of :attr:`~loopctl.worker.model.routes.Routes.embed`.
        env: Where its key is.
        cashier: Pays.
        patience: The bounds of a request.
        waits: Those of the call.
    """

    def __init__(
        self,
        attempt: Attempt,
        env: Mapping[str, str],
        cashier: Cashier,
        patience: Patience,
        waits: Waits,
    ) -> None:
        self._attempt = attempt
        self._env = env
        self._cashier = cashier
        self._patience = patience
        self._waits = waits

    def embed(self, texts: Sequence[str]) -> Vectors | None:
        """Return a vector for each text, all of one length; ``None`` where it failed.

        Raises:
            CancelledError: The run was asked to stop.
        """
        # Providers refuse a text that is empty.
        asked = [clean(text)[:MAX_CHARACTERS] or " " for text in texts]
        vectors: list[tuple[float, ...]] = []
        for start in range(0, len(asked), BATCH):
            found = self._batch(asked[start : start + BATCH])
            if found is None:
                return None
            vectors += found
        return tuple(vectors) if len({len(vector) for vector in vectors}) <= 1 else None

    def _batch(self, texts: Sequence[str]) -> Vectors | None:
        tokens = sum(count_text(self._attempt.model, text) for text in texts)
        failed = 0
        while True:
            self._waits.go_on()
            found: list[tuple[float, ...]] = []

            def make(pieces: Pieces, found: list[tuple[float, ...]] = found) -> None:
                pieces.usage, vectors = self._ask(texts)
                found += vectors

            paid = self._cashier.pay(self._attempt, PURPOSE, tokens, 0, make)
            if not isinstance(paid, Paid):
                return None
            if isinstance(paid.result, Pieces):
                return tuple(found) if len(found) == len(texts) else None
            failed += 1
            if paid.result.kind is not FailureKind.PASSING or not self._waits.before_another(
                failed, paid.result.retry_after_s
            ):
                return None

    def _ask(self, texts: Sequence[str]) -> tuple[Any, list[tuple[float, ...]]]:
        answer = library().embedding(
            **access(self._attempt, self._env),
            input=list(texts),
            timeout=patience_of(self._patience.request_s),
            drop_params=True,
        )
        usage = getattr(answer, "usage", None)
        entries = sorted(answer.data, key=lambda entry: entry["index"])
        vectors = [tuple(map(float, entry["embedding"])) for entry in entries]
        return (usage if usage is not None and usage.prompt_tokens else None), vectors
