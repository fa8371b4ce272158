"""The model worker's process: ``python -m loopctl.worker``, spoken to in lines over its pipes.

What takes seconds to import is named here and loaded beside the greeting, before the first step.
"""

import os
import threading
from collections.abc import Iterator, Mapping, Sequence
from importlib import import_module
from typing import Any, Final

from loopctl.calls import ToolSpec
from loopctl.contextports import Answered, Question, Unanswered
from loopctl.steps import StepEvent, StepRequest
from loopctl.worker.door import Door, Till
from loopctl.worker.serve import ClaimOf, Handlers, main

_STEPS: Final = "loopctl.worker.work"
_MODELS: Final = "loopctl.worker.model.open"


def handlers(env: Mapping[str, str]) -> Handlers[Any]:
    """Return what this process can do; ``env`` is where the keys are."""

    def load() -> None:
        import_module(_STEPS)
        import_module(_MODELS).load()

    def open_model(routes: str, till: Till, claim_of: ClaimOf, stop: threading.Event) -> Any:
        return import_module(_MODELS).open_model(routes, till, claim_of, env=env, stop=stop)

    def run_step(
        request: StepRequest, specs: tuple[ToolSpec, ...], door: Door, model: Any
    ) -> Iterator[StepEvent]:
        events: Iterator[StepEvent] = import_module(_STEPS).run_step(request, specs, door, model)
        return events

    def answer(question: Question, model: Any) -> Answered | Unanswered:
        answered: Answered | Unanswered = import_module(_MODELS).ask(question, model)
        return answered

    def embed(texts: Sequence[str], model: Any) -> tuple[tuple[float, ...], ...] | None:
        vectors: tuple[tuple[float, ...], ...] | None = import_module(_MODELS).embed(texts, model)
        return vectors

    return Handlers(load, open_model, run_step, answer, embed)


if __name__ == "__main__":
    # Its whole environment is what the engine gave it for exactly this.
    main(handlers(dict(os.environ)))  # noqa: TID251
