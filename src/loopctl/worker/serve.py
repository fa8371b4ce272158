"""The child: greets the engine, and does steps and questions at once, each in a thread of its own.

What a step is, and what a model is, comes in as :class:`Handlers`; this is the way to them and
back. The slow imports begin before the greeting is read. Whatever a talk raises ends that talk
alone, and says why; the end of the engine's lines ends the process.
"""

import contextlib
import gc
import os
import threading
import traceback
from collections.abc import Callable, Generator, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Final, Generic, NoReturn, TypeVar

from loopctl.calls import ToolSpec
from loopctl.contextports import Answered, Question, Unanswered
from loopctl.domain import GOAL, Limits
from loopctl.errors import CancelledError, EnvironmentFaultError
from loopctl.moneyports import Claim
from loopctl.steps import StepEvent, StepRequest
from loopctl.worker.asking import PipeDoor, Send
from loopctl.worker.codec import decode_for_child
from loopctl.worker.door import Door, Till
from loopctl.worker.pipes import claim_pipes
from loopctl.worker.protocol import (
    GREETING,
    VERSION,
    Cancel,
    DoStep,
    Embed,
    End,
    Ended,
    Failed,
    Failure,
    Frame,
    Hello,
    Ready,
    ToChild,
    Vectors,
    Work,
)

OFFLINE: Final[Mapping[str, str]] = {
    "LITELLM_LOCAL_MODEL_COST_MAP": "True",
    "LITELLM_OFFLINE_MODE": "true",
    "LANGSMITH_TRACING": "false",
    "LANGGRAPH_STRICT_MSGPACK": "true",
}
"""Variables that keep libraries from the network, and from types that they do not know; they read
them while they are imported."""

_TRACE_CHARS: Final = 2000

ModelT = TypeVar("ModelT")

ClaimOf = Callable[[str, str, int, float | None], Claim]
"""Makes a claim of a purpose, a model's name, tokens and US dollars (``None`` where unknown)."""

OpenModel = Callable[[str, Till, ClaimOf, threading.Event], ModelT]
"""Returns the models of routes (JSON) for one talk, which puts its money aside at that till; the
event is set when the talk is cancelled."""

RunStep = Callable[[StepRequest, tuple[ToolSpec, ...], Door, ModelT], Iterator[StepEvent]]
AnswerQuestion = Callable[[Question, ModelT], Answered | Unanswered]
EmbedTexts = Callable[[Sequence[str], ModelT], tuple[tuple[float, ...], ...] | None]


@dataclass(frozen=True)
class Handlers(Generic[ModelT]):
    """What the child can do; each is called in several threads at once.

    Attributes:
        load: Does the slow imports; called once, beside everything else.
    """

    load: Callable[[], None]
    open_model: OpenModel[ModelT]
    run_step: RunStep[ModelT]
    answer: AnswerQuestion[ModelT]
    embed: EmbedTexts[ModelT]


def main(handlers: Handlers[ModelT]) -> NoReturn:
    """Serve the engine over this process's own standard streams until it has no more to say."""
    # The libraries of this process read them there, while they are imported.
    os.environ.update(OFFLINE)  # noqa: TID251
    with claim_pipes() as (lines, send):
        # A thread may hang in a request for minutes; nobody waits for its reply any more.
        os._exit(Server(handlers, send).run(lines))


@dataclass
class _Loading:
    """The slow imports, under way."""

    is_over: threading.Event = field(default_factory=threading.Event)
    fault: str = ""


class Server(Generic[ModelT]):
    """Does what the engine's lines ask for.

    Args:
        send: Writes a frame to the engine; called in several threads at once.
    """

    def __init__(self, handlers: Handlers[ModelT], send: Send) -> None:
        self._handlers = handlers
        self._send = send
        self._loading = _Loading()
        self._lock = threading.Lock()
        self._doors: dict[int, PipeDoor] = {}
        self._routes = ""

    def run(self, lines: Iterable[bytes]) -> int:
        """Return the process's exit code once the lines have come to their end."""
        threading.Thread(target=self._load, name="load", daemon=True).start()
        rest = iter(lines)
        try:
            first = next(rest, None)
            if first is not None:
                self._greet(decode_for_child(first))
            for line in rest:
                self._take(decode_for_child(line))
        except EnvironmentFaultError as exc:
            self._send(Frame(GREETING, Failed(Failure.ENVIRONMENT, str(exc))))
            return exc.exit_code
        finally:
            self._cancel_all()
        return 0

    def _load(self) -> None:
        # Importing makes many objects and no garbage; looking for some costs a fifth of its time.
        gc.disable()
        try:
            self._handlers.load()
        except BaseException as exc:  # noqa: BLE001 - said in every talk that needs what is missing
            self._loading.fault = f"{type(exc).__name__}: {exc}"
        finally:
            gc.enable()
            self._loading.is_over.set()

    def _greet(self, frame: Frame[ToChild]) -> None:
        match frame.body:
            case Hello(routes, version) if version == VERSION:
                self._routes = routes
                self._send(Frame(GREETING, Ready()))
            case Hello(version=version):
                raise EnvironmentFaultError(
                    f"loop speaks version {version} of the model worker's protocol and the model "
                    f"worker's process version {VERSION}; install the same loop on both sides"
                )
            case other:
                raise EnvironmentFaultError(
                    f"the engine's first word was {type(other).__name__}, and Hello was expected"
                )

    def _take(self, frame: Frame[ToChild]) -> None:
        match frame.body:
            case DoStep() | Question() | Embed() as work:
                self._begin(frame.talk, work)
            case Cancel():
                if door := self._door(frame.talk):
                    door.cancel()
            case Hello():
                raise EnvironmentFaultError("the engine has greeted a second time")
            case answer:
                # One to a talk that is over has crossed its end on the way.
                if door := self._door(frame.talk):
                    door.take(frame.ask, answer)

    def _begin(self, talk: int, work: Work) -> None:
        door = PipeDoor(talk, self._send)
        with self._lock:
            self._doors[talk] = door
        threading.Thread(
            target=self._work, args=(talk, work, door), name=f"talk-{talk}", daemon=True
        ).start()

    def _work(self, talk: int, work: Work, door: PipeDoor) -> None:
        """Do it; the last frame of the talk is its result, or why it has none."""
        try:
            self._send(Frame(talk, self._do(talk, work, door)))
        except BaseException as exc:  # noqa: BLE001 - a talk's end is never the process's
            self._send(Frame(talk, _failed(exc)))
        finally:
            with self._lock:
                self._doors.pop(talk, None)

    def _do(self, talk: int, work: Work, door: PipeDoor) -> End:
        self._loading.is_over.wait()
        if self._loading.fault:
            raise EnvironmentFaultError(
                f"the libraries that speak to models cannot be imported: {self._loading.fault}; "
                "install loop anew"
            )
        model = self._handlers.open_model(self._routes, door, claim_of(work), door.stopped)
        match work:
            case DoStep(request, specs):
                self._tell(talk, self._handlers.run_step(request, specs, door, model), door)
                return Ended()
            case Question():
                return self._handlers.answer(work, model)
            case Embed(texts):
                return Vectors(self._handlers.embed(texts, model))

    def _tell(self, talk: int, events: Iterator[StepEvent], door: PipeDoor) -> None:
        with contextlib.ExitStack() as closing:
            if isinstance(events, Generator):
                closing.callback(events.close)
            for event in events:
                if door.stopped.is_set():
                    raise CancelledError("the engine has ended this step")
                self._send(Frame(talk, event))

    def _door(self, talk: int) -> PipeDoor | None:
        with self._lock:
            return self._doors.get(talk)

    def _cancel_all(self) -> None:
        with self._lock:
            doors = [*self._doors.values()]
        for door in doors:
            door.cancel()


def claim_of(work: Work) -> ClaimOf:
    """Return what makes the claims of a talk. Who pays is filled in by the engine's side anyway."""
    match work:
        case DoStep(request):
            budget = request.budget
            caps = Limits(tokens=budget.tokens_max, usd=budget.usd_max)
            payer = (request.run_id, str(request.task.id))
        case Question(run_id=run_id, task=task, caps=caps):
            payer = (run_id, task)
        case Embed():
            caps, payer = Limits(), ("", GOAL)
    return lambda purpose, model, tokens, usd: Claim(*payer, purpose, model, tokens, usd, caps)


def _failed(fault: BaseException) -> Failed:
    if isinstance(fault, CancelledError):
        return Failed(Failure.CANCELLED, str(fault))
    if isinstance(fault, EnvironmentFaultError):
        return Failed(Failure.ENVIRONMENT, str(fault))
    trace = "".join(traceback.format_exception(fault)).strip()
    return Failed(Failure.BUG, trace[-_TRACE_CHARS:])
