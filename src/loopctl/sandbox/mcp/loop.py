"""The thread in which all connections live: it has an event loop, and the others wait for it."""

import threading
from collections.abc import Awaitable, Callable
from concurrent.futures import Future, wait
from contextlib import AbstractContextManager
from typing import ParamSpec, TypeVar

from anyio.from_thread import BlockingPortal, start_blocking_portal

from loopctl.errors import CancelledError

P = ParamSpec("P")
T = TypeVar("T")

_TICK_S = 0.05


class LoopThread:
    """Runs coroutines for other threads; begins with the object and ends with :meth:`close`.

    Args:
        cancel: Ends all waiting when set.
    """

    def __init__(self, cancel: threading.Event | None) -> None:
        self._cancel = cancel
        self._portals: AbstractContextManager[BlockingPortal] = start_blocking_portal(
            "asyncio", name="tool servers"
        )
        self._portal = self._portals.__enter__()

    def spawn(self, work: Callable[[], Awaitable[T]]) -> "Future[T]":
        """Have ``work`` done and do not wait for it."""
        return self._portal.start_task_soon(work)

    def run(self, work: Callable[[], Awaitable[T]]) -> T:
        """Return what ``work`` comes to.

        Raises:
            CancelledError: The run was asked to stop; the work was told to.
        """
        future = self.spawn(work)
        try:
            return self.wait(future)
        except CancelledError:
            future.cancel()
            raise

    def wait(self, future: "Future[T]") -> T:
        """Return the result of a future that something in the loop will set.

        Raises:
            CancelledError: The run was asked to stop.
        """
        # An event of another thread wakes nobody who waits for a future, so look often.
        while not wait([future], timeout=None if self._cancel is None else _TICK_S).done:
            if self._cancel is not None and self._cancel.is_set():
                raise CancelledError("the run was asked to stop")
        return future.result()

    def close(self) -> None:
        """End the thread; what is still in it is waited for."""
        self._portals.__exit__(None, None, None)
