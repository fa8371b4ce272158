"""What the worker's process calls to have models: from the routes' JSON to what asks them.

The starter of that process gives it, of its own environment, ``Routes.variables`` and
``NETWORK_VARIABLES``, and nothing else has to be in it. Importing this module is cheap: LiteLLM
comes with the first request, or with :func:`load`.
"""

import threading
from collections.abc import Mapping, Sequence

from loopctl.clock import Clock, SystemClock
from loopctl.contextports import Answered, Question, Unanswered
from loopctl.redaction import Redactor
from loopctl.worker.door import Till
from loopctl.worker.model.answer import answer
from loopctl.worker.model.complete import LiteModel
from loopctl.worker.model.embed import Vectors
from loopctl.worker.model.lite import library
from loopctl.worker.model.paid import Cashier, ClaimOf
from loopctl.worker.model.patience import Patience, Stop
from loopctl.worker.model.routes import routes_from_json


def load() -> None:
    """Import LiteLLM now: seconds of work that can be done while nobody waits for it."""
    library()


def open_model(
    routes: str,
    till: Till,
    claim_of: ClaimOf,
    *,
    env: Mapping[str, str],
    stop: Stop | None = None,
    clock: Clock | None = None,
    patience: Patience | None = None,
) -> LiteModel:
    """Return the models of a run, for one step or one question.

    Args:
        routes: What ``Routes.to_json`` wrote.
        till: Where money is put aside before each request and settled after it.
        claim_of: Says who pays: :func:`~loopctl.worker.model.paid.claims_of`, say.
        env: Where the keys are, by the names that the routes have; read anew for each request.
        stop: Set where the run was asked to stop: it ends waits, and replies on their way.
        clock: The machine's where it is not given.
        patience: The usual bounds where it is not given.
    """
    found = routes_from_json(routes)
    stop = stop or threading.Event()
    clock = clock or SystemClock()
    redact = Redactor(env, found.variables)
    cashier = Cashier(till, claim_of, env, redact, clock, stop)
    return LiteModel(found, env, cashier, clock=clock, stop=stop, patience=patience or Patience())


def ask(question: Question, model: LiteModel) -> Answered | Unanswered:
    """Return the answer to one question, within the limit of tokens that it has.

    Raises:
        CancelledError: The run was asked to stop.
    """
    return answer(question, model.limited(question.max_output_tokens))


def embed(texts: Sequence[str], model: LiteModel) -> Vectors | None:
    """Return a vector for each text; ``None`` where no model for that is set, or it failed.

    Raises:
        CancelledError: The run was asked to stop.
    """
    return model.embed(texts)
