"""How long a provider is waited for: bounded in tries and in time."""

from dataclasses import dataclass
from typing import Protocol

from loopctl.clock import Clock
from loopctl.errors import CancelledError


class Stop(Protocol):
    """The user asked the run to stop; ``threading.Event`` is one."""

    def is_set(self) -> bool:
        """Return whether it was asked."""
        ...

    def wait(self, timeout: float) -> bool:
        """Wait so many seconds, or until it is asked; return whether it was."""
        ...


@dataclass(frozen=True, slots=True)
class Patience:
    """The bounds of one call of :class:`~loopctl.worker.model.complete.LiteModel`.

    Attributes:
        tries: Requests to one model, the first one included.
        refused_tries: Of these, where nothing listens at the model's address: a server that is
            being started again is soon there, and any other is a matter of the settings.
        empty_tries: Replies in which there is nothing, before that is taken for the reply.
        total_s: After which no retry is waited for any more; a fallback is still asked once.
        request_s: How long a provider may be silent within one request.
        first_wait_s: Before the second try; it doubles each time.
        longest_wait_s: Where the provider does not ask for more.
    """

    tries: int = 8
    refused_tries: int = 3
    empty_tries: int = 2
    total_s: float = 900.0
    request_s: float = 300.0
    first_wait_s: float = 1.0
    longest_wait_s: float = 60.0

    def wait_s(self, failed: int, asked_s: float | None) -> float:
        """Return the seconds to wait after so many failed tries.

        Args:
            failed: 1 or more.
            asked_s: The provider's ``Retry-After``; below a second it says nothing.
        """
        if asked_s is not None and asked_s >= 1:
            return asked_s
        return float(min(self.longest_wait_s, self.first_wait_s * 2 ** (failed - 1)))


class Waits:
    """The waits of one call, over all its models.

    Args:
        patience: The bounds.
        clock: For how long it has taken.
        stop: Wakes a wait.
    """

    def __init__(self, patience: Patience, clock: Clock, stop: Stop) -> None:
        self._patience = patience
        self._clock = clock
        self._stop = stop
        self._until = clock.monotonic() + patience.total_s

    def go_on(self) -> None:
        """Do nothing, or raise ``CancelledError`` where the run was asked to stop."""
        if self._stop.is_set():
            raise CancelledError

    def before_another(self, failed: int, asked_s: float | None) -> bool:
        """Wait for the next try of a model; false, at once, where the bounds leave none.

        Args:
            failed: Tries of this model so far.
            asked_s: The provider's ``Retry-After``.

        Raises:
            CancelledError: The run was asked to stop meanwhile.
        """
        wait_s = self._patience.wait_s(failed, asked_s)
        if failed >= self._patience.tries or self._clock.monotonic() + wait_s > self._until:
            return False
        if self._stop.wait(wait_s):
            raise CancelledError
        return True
