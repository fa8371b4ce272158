"""The engine's side of the pipe: one child process for all threads of a run, and its talks.

One thread reads what the child says and puts each frame before the thread whose talk it is. A
child that has died is started again by the next who begins a talk.
"""

import contextlib
import itertools
import queue
import sys
import threading
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from typing import Final

from loopctl.clock import Clock
from loopctl.errors import CancelledError, EnvironmentFaultError
from loopctl.ports import Service
from loopctl.worker.codec import decode_for_engine, encode
from loopctl.worker.protocol import (
    GREETING,
    VERSION,
    Answer,
    Cancel,
    End,
    Failed,
    Frame,
    Hello,
    Ready,
    Settle,
    ToChild,
    ToEngine,
    Work,
)

CHILD: Final = (sys.executable, "-P", "-m", "loopctl.worker")
"""Its command line: this very installation; ``-P``, since its folder may hold a ``loopctl``."""

_TICK_S: Final = 0.05
_PARTING_S: Final = 2.0
"""How long the end of a cancelled talk is waited for: a reply that streams ends at once, a provider
that is silent does not."""


@dataclass(frozen=True, slots=True)
class Lost:
    """The child is gone, or could not be understood: why, one text."""

    reason: str


Heard = Frame[ToEngine] | Lost
_Box = queue.SimpleQueue[Heard]


class Talk:
    """What one thread of the engine and the child have to say to each other."""

    def __init__(self, link: "_Link", number: int, box: _Box, home: "ModelProcess") -> None:
        self._link = link
        self._number = number
        self._box = box
        self._home = home
        self._is_over = False

    def hear(self, deadline: float | None = None) -> Heard | None:
        """Return what the child says next; ``None`` where it says nothing before the deadline.

        Args:
            deadline: Of the monotonic clock; ``None`` for none.

        Raises:
            CancelledError: The run was asked to stop.
        """
        while True:
            if self._home.cancel.is_set():
                raise CancelledError("the run was asked to stop")
            if deadline is not None and self._home.clock.monotonic() >= deadline:
                return None
            if heard := self._next():
                return heard

    def answer(self, ask: int, answer: Answer) -> None:
        """Answer the child's ask of that number."""
        self._link.say(Frame(self._number, answer, ask))

    def part(self, settle: Callable[[Settle], object]) -> None:
        """Cancel the talk unless it is over, and settle what was on its way, for a little while."""
        if self._is_over:
            return
        self._link.say(Frame(self._number, Cancel()))
        deadline = self._home.clock.monotonic() + _PARTING_S
        while self._home.clock.monotonic() < deadline:
            heard = self._next()
            if heard is not None and _is_last(heard):
                return
            if isinstance(heard, Frame) and isinstance(heard.body, Settle):
                settle(heard.body)

    def _next(self) -> Heard | None:
        try:
            heard = self._box.get(timeout=_TICK_S)
        except queue.Empty:
            return None
        self._is_over = _is_last(heard)
        return self._home.clean(heard)


def _is_last(heard: Heard) -> bool:
    return isinstance(heard, Lost) or isinstance(heard.body, End)


class ModelProcess:
    """The model worker's process: started when it is first needed, or warmed up before.

    Args:
        start: Starts the process.
        routes: For ``worker/model``, JSON.
        cancel: Set when the user asks the run to stop.
        redact: Takes the keys out of everything that the child says of its faults.
    """

    def __init__(
        self,
        start: Callable[[], Service],
        routes: str,
        *,
        clock: Clock,
        cancel: threading.Event,
        redact: Callable[[str], str] | None = None,
    ) -> None:
        self.clock = clock
        self.cancel = cancel
        self._start = start
        self._routes = routes
        self._redact = redact or (lambda text: text)
        self._lock = threading.Lock()
        self._link: _Link | None = None
        self._is_closed = False

    def warm(self) -> None:
        """Start the process ahead of its first use; what hinders it is said by that."""
        with contextlib.suppress(EnvironmentFaultError):
            self._linked()

    @contextlib.contextmanager
    def talk(self, work: Work, settle: Callable[[Settle], object]) -> Iterator[Talk]:
        """Begin a talk with the child, one started anew where the last has died.

        Who leaves before its end cancels it; a request that is on its way then is settled by
        ``settle``.

        Raises:
            EnvironmentFaultError: The process cannot be started; says why.
            CancelledError: The run has ended.
        """
        link = self._linked()
        number, box = link.begin(work)
        talk = Talk(link, number, box, self)
        try:
            yield talk
        finally:
            try:
                talk.part(settle)
            finally:
                link.leave(number)

    def clean(self, heard: Heard) -> Heard:
        """Return what was heard; what tells of a fault, without the keys."""
        match heard:
            case Lost(reason):
                return Lost(self._without_keys(reason))
            case Frame(body=Failed(kind, text)):
                return replace(heard, body=Failed(kind, self._without_keys(text)))
            case _:
                return heard

    def close(self) -> None:
        """End the process; nothing can be begun afterwards."""
        with self._lock:
            link, self._link, self._is_closed = self._link, None, True
        if link is not None:
            link.close()

    def _without_keys(self, text: str) -> str:
        return self._redact(text)

    def _linked(self) -> "_Link":
        with self._lock:
            if self._is_closed:
                raise CancelledError("the run has ended; its model worker takes no more steps")
            if self._link is None or self._link.is_lost:
                self._link = _Link(self._start(), self._routes)
            return self._link


class _Link:
    """One child process, from its start to its end."""

    def __init__(self, service: Service, routes: str) -> None:
        self._service = service
        self._numbers = itertools.count(GREETING + 1)
        self._lock = threading.Lock()
        self._boxes: dict[int, _Box] = {}
        self._lost: Lost | None = None
        self._reader = threading.Thread(target=self._read, name="model-worker", daemon=True)
        self.say(Frame(GREETING, Hello(routes)))
        self._reader.start()

    @property
    def is_lost(self) -> bool:
        return self._lost is not None

    def say(self, frame: Frame[ToChild]) -> None:
        self._service.send(encode(frame))

    def begin(self, work: Work) -> tuple[int, _Box]:
        box: _Box = queue.SimpleQueue()
        number = next(self._numbers)
        with self._lock:
            if self._lost is not None:
                box.put(self._lost)
            self._boxes[number] = box
        self.say(Frame(number, work))
        return number, box

    def leave(self, number: int) -> None:
        with self._lock:
            self._boxes.pop(number, None)

    def close(self) -> None:
        self._service.close()
        self._reader.join()

    def _read(self) -> None:
        reason = "the model worker's process could not be heard"
        try:
            reason = self._hear_all()
        except EnvironmentFaultError as exc:
            reason = str(exc)
        finally:
            self._service.close()
            self._lose(Lost(reason + self._last_words()))

    def _hear_all(self) -> str:
        """Put every frame before its thread; return how the child has ended."""
        is_greeted = False
        while (line := self._service.receive()) is not None:
            frame = decode_for_engine(line)
            if frame.talk == GREETING:
                _check_greeting(frame)
                is_greeted = True
            elif not is_greeted:
                raise EnvironmentFaultError("the model worker's process did not greet")
            with self._lock:
                box = self._boxes.get(frame.talk)
            if box is not None:
                box.put(frame)
        code = self._service.returncode
        how = (
            "" if code is None else f" by signal {-code}" if code < 0 else f" with exit code {code}"
        )
        return f"the model worker's process ended{how}"

    def _last_words(self) -> str:
        tail = self._service.tail()
        return f"; it said last:\n{tail}" if tail else ""

    def _lose(self, lost: Lost) -> None:
        with self._lock:
            self._lost = lost
            boxes = [*self._boxes.values()]
        for box in boxes:
            box.put(lost)


def _check_greeting(frame: Frame[ToEngine]) -> None:
    match frame.body:
        case Ready(version) if version == VERSION:
            return
        case Ready(version):
            raise EnvironmentFaultError(
                f"the model worker's process speaks version {version} of its protocol and loop "
                f"version {VERSION}; install the same loop on both sides"
            )
        case Failed(text=text):
            raise EnvironmentFaultError(text)
        case other:
            raise EnvironmentFaultError(
                f"the model worker's process greeted with {type(other).__name__}, not with Ready"
            )
