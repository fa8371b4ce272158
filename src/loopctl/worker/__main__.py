"""The model worker's process: ``python -m loopctl.worker``, spoken to in lines over its pipes.

What takes seconds to import is named here and loaded beside the greeting, before the first step.
"""

import gc
import os
import threading
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from loopctl.calls import ToolSpec
from loopctl.contextports import Answered, Question, Unanswered
from loopctl.steps import StepEvent, StepRequest
from loopctl.worker.door import Door, Till
from loopctl.worker.serve import ClaimOf, Handlers, main


def handlers(env: Mapping[str, str]) -> Handlers[Any]:
    """Return what this process can do; ``env`` is where the keys are."""
    # Imported where they are used: the greeting must not wait for them.

    def load() -> None:
        # What is imported stays, and looking through all of it for cycles again and again is a
        # quarter of the whole time.
        gc.disable()
        try:
            from loopctl.worker import work  # noqa: F401, PLC0415
            from loopctl.worker.model import open as models  # noqa: PLC0415

            models.load()
            gc.freeze()
        finally:
            gc.enable()

    def open_model(routes: str, till: Till, claim_of: ClaimOf, stop: threading.Event) -> Any:
        from loopctl.worker.model import open as models  # noqa: PLC0415

        return models.open_model(routes, till, claim_of, env=env, stop=stop)

    def run_step(
        request: StepRequest, specs: tuple[ToolSpec, ...], door: Door, model: Any
    ) -> Iterator[StepEvent]:
        from loopctl.worker import work  # noqa: PLC0415

        return work.run_step(request, specs, door, model)

    def answer(question: Question, model: Any) -> Answered | Unanswered:
        from loopctl.worker.model import open as models  # noqa: PLC0415

        return models.ask(question, model)

    def embed(texts: Sequence[str], model: Any) -> tuple[tuple[float, ...], ...] | None:
        from loopctl.worker.model import open as models  # noqa: PLC0415

        return models.embed(texts, model)

    return Handlers(load, open_model, run_step, answer, embed)


if __name__ == "__main__":
    # Its whole environment is what the engine gave it for exactly this.
    main(handlers(dict(os.environ)))  # noqa: TID251
