"""A worker whose steps are given by a function of the request, and what its steps say."""

import threading
from collections.abc import Callable, Iterator
from typing import Any

from loopctl.domain import Option
from loopctl.steps import ForkRaised, OutputTail, StepEvent, StepRequest, TodoDone, WorkerProgress
from loopctl.testing import MemorySandbox
from loopctl.verdict import Blame, Check, CheckResult, Verdict

Did = tuple[str | None, tuple[StepEvent, ...]]
"""The tree after a step, and what it said."""

DONE: tuple[StepEvent, ...] = (OutputTail(0, "ok"), TodoDone("did it"))
RED: tuple[StepEvent, ...] = (OutputTail(1, "red"),)


def fork(*names: str, question: str = "Regex or parser?", **more: Any) -> ForkRaised:
    options = tuple(Option(name, f"by {name}") for name in names or ("regex", "parser"))
    return ForkRaised(question, more.pop("bucket", "quality"), options, **more)


class Hands:
    """A worker whose steps are given by a function of the request."""

    def __init__(self, does: Callable[[StepRequest], Did], *, makes_plans: bool = False) -> None:
        self.does = does
        self.makes_plans = makes_plans
        self.requests: list[StepRequest] = []
        self.lock = threading.Lock()

    def execute_step(self, request: StepRequest, sandbox: MemorySandbox) -> Iterator[StepEvent]:
        with self.lock:
            self.requests.append(request)
        tree, events = self.does(request)
        if tree is not None:
            sandbox.restore(tree)
        yield from events
        said = f"{request.candidate} {request.loop_iteration} {tree}"
        yield WorkerProgress(
            made_tool_calls=True, tool_calls_errored=False, response_delta_hash=said
        )

    def of(self, candidate: str) -> list[StepRequest]:
        return [request for request in self.requests if request.candidate.endswith(candidate)]


def forking(**trees: str) -> Callable[[StepRequest], Did]:
    """Fork first; then each option makes its tree and is done."""

    def does(request: StepRequest) -> Did:
        if request.option is None:
            return "half", (fork(*trees),)
        return trees[request.option.name], DONE

    return does


def still_red(bench: Any) -> None:
    bench.gate.failing = CheckResult(
        Check.VERIFY, Verdict.FAIL, Blame.PRE_EXISTING, reason="red at the base as well"
    )
