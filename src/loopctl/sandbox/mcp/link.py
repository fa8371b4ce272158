"""One server in one place: connected when it is needed, and again after it was lost.

What was pinned is what its tools are; one that is something else is refused until a person has
approved what it is now.
"""

import threading
from collections.abc import Mapping
from concurrent.futures import Future
from concurrent.futures import TimeoutError as WaitedTooLongError
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from loopctl.errors import EnvironmentFaultError, LoopctlError, SandboxError
from loopctl.sandbox.mcp.listing import ListedTool, named
from loopctl.sandbox.mcp.pins import Pins
from loopctl.sandbox.mcp.source import Source

if TYPE_CHECKING:
    from loopctl.sandbox.mcp.connection import Answer, Connection
    from loopctl.sandbox.mcp.loop import LoopThread
    from loopctl.sandbox.mcp.stdio import ProcessStreams

MAX_STARTS: Final = 5
"""Of one server in one place; more would be a server that dies of every call."""
_END_S: Final = 15.0


class _Opened:
    """A connection that was begun: where, and what became of it."""

    def __init__(
        self,
        connection: "Connection",
        streams: "ProcessStreams | None",
        place: tuple[int, int] | None,
    ) -> None:
        self.connection = connection
        self.streams = streams
        self.place = place
        self.served: Future[None] | None = None
        self.listed: Mapping[str, ListedTool] | None = None

    @property
    def refusal(self) -> str:
        return self.streams.refusal if self.streams else ""


class Link:
    """Connects with a server, and with the same again, a bounded number of times.

    Args:
        source: The server.
        loop: Where its connections live.
        pins: What its tools are held to, wherever it runs.
        worktree: Where its process runs; a folder of its own where ``None``.
    """

    def __init__(
        self, source: Source, loop: "LoopThread", pins: Pins, worktree: Path | None
    ) -> None:
        self.source = source
        self._loop = loop
        self._pins = pins
        self._worktree = worktree
        self._lock = threading.RLock()
        self._opened: _Opened | None = None
        self._starts = 0
        self._is_closed = False

    def begin(self) -> None:
        """Begin to connect where there is no connection, and do not wait for it.

        Raises:
            EnvironmentFaultError: It was tried too often, or a variable is not set.
            SandboxError: The worktree is gone.
        """
        self._current()

    def tools(self) -> Mapping[str, ListedTool]:
        """Return the tools as they are shown in the run, connecting where needed.

        Raises:
            EnvironmentFaultError: The server cannot be had; says which, why and what to do.
            SandboxError: The worktree is gone.
            CancelledError: The run was asked to stop.
        """
        _, listed = self._ready(is_asked_again=True)
        return self._pins.take(listed)

    def call(self, name: str, arguments: Mapping[str, Any], key: str) -> "Answer | str":
        """Return what came of a call of the tool of that name; a text says why it was not sent.

        One that a server surely did not carry out, since it has forgotten the session, is sent
        once more in a new one.

        Raises:
            SandboxError: The worktree is gone.
            CancelledError: The run was asked to stop.
        """
        answer, is_forgotten = self._sent(name, arguments, key)
        return self._sent(name, arguments, key)[0] if is_forgotten else answer

    def _sent(
        self, name: str, arguments: Mapping[str, Any], key: str
    ) -> "tuple[Answer | str, bool]":
        """Return what came of a call, and whether the server has forgotten the session."""
        try:
            opened, listed = self._ready()
        except EnvironmentFaultError as fault:
            return f"{fault} The call was not sent.", False
        now = listed.get(name)
        changed = self._pins.change(name, now)
        if now is None or (changed and not self._pins.let(name, now, key)):
            return (
                f"{name} is not what it was when it was pinned: {changed}. It is not called as it "
                "is now before a person has approved that"
            ), False
        connection = opened.connection
        answer = self._loop.run(partial(connection.call, now.name, arguments, key))
        return self._explained(answer, opened), connection.is_forgotten

    def question(self, name: str) -> str:
        """Return why a person is asked about a tool first; empty where it is what was pinned.

        Where nobody can tell, the call itself says why.

        Raises:
            SandboxError: The worktree is gone.
            CancelledError: The run was asked to stop.
        """
        try:
            now = self._ready()[1].get(name)
        except EnvironmentFaultError:
            return ""
        return self._pins.question(name, now) if now is not None else ""

    def close(self) -> None:
        """End the connection and the server's process, if it is one; nothing is started again."""
        with self._lock:
            self._is_closed = True
            self._end()

    def _current(self) -> _Opened:
        with self._lock:
            place = _identity(self._worktree)
            opened = self._opened
            if opened is not None and not opened.connection.is_lost and opened.place == place:
                return opened
            self._end()
            if opened is not None and opened.listed is not None and opened.connection.is_forgotten:
                # That is no fault of a server: many end a session after a while without a call.
                self._starts -= 1
            if self._is_closed:
                raise self.source.fault("is closed, since its sandbox or its run is at its end")
            if self._starts >= MAX_STARTS:
                raise self.source.fault(f"was lost {self._starts} times and is not tried again")
            self._starts += 1
            try:
                connection, streams = self.source.connection(self._worktree)
            except EnvironmentFaultError as fault:
                raise self.source.fault(str(fault)) from fault
            opened = self._opened = _Opened(connection, streams, place)
            opened.served = self._loop.spawn(connection.serve)
            return opened

    def _ready(self, *, is_asked_again: bool = False) -> tuple[_Opened, Mapping[str, ListedTool]]:
        """Return a connection with its tools; a new one where the server has forgotten the old.

        Args:
            is_asked_again: Not every server says that its tools have changed, so one that was
                connected with before is asked for them.

        Raises:
            EnvironmentFaultError, SandboxError, CancelledError: As :meth:`tools`.
        """
        opened = self._current()
        opened.connection.has_changed |= is_asked_again and opened.listed is not None
        try:
            return opened, self._listed(opened)
        except EnvironmentFaultError:
            if not opened.connection.is_forgotten:
                raise
        opened = self._current()
        return opened, self._listed(opened)

    def _listed(self, opened: _Opened) -> Mapping[str, ListedTool]:
        connection = opened.connection
        try:
            tools = self._loop.wait(connection.opened)
            if connection.has_changed:
                tools, opened.listed = self._loop.run(connection.tools), None
            if opened.listed is None:
                opened.listed = named(self.source.name, tools)
        except EnvironmentFaultError as fault:
            raise self._fault(opened, fault) from fault
        return opened.listed

    def _fault(self, opened: _Opened, fault: LoopctlError) -> EnvironmentFaultError:
        """Return the fault with what the process has to say, which it has only after its end."""
        self._wait_for_end(opened)
        return self.source.fault(
            opened.refusal or str(fault), opened.streams.account() if opened.streams else ""
        )

    def _explained(self, answer: "Answer", opened: _Opened) -> "Answer":
        from loopctl.sandbox.mcp.connection import Lost  # noqa: PLC0415 - it imports the SDK

        if isinstance(answer, Lost) and opened.refusal:
            return Lost(f"its server {opened.refusal}")
        return answer

    def _end(self) -> None:
        opened, self._opened = self._opened, None
        if opened is not None:
            self._wait_for_end(opened)

    def _wait_for_end(self, opened: _Opened) -> None:
        self._loop.spawn(opened.connection.stop)
        if opened.served is None:
            return
        try:
            opened.served.result(_END_S)
        except WaitedTooLongError:
            opened.served.cancel()


def _identity(worktree: Path | None) -> tuple[int, int] | None:
    """Return by what a folder is known: one that was made anew is another."""
    if worktree is None:
        return None
    try:
        found = worktree.stat()
    except OSError as error:
        raise SandboxError(f"the folder {worktree} is gone") from error
    return found.st_dev, found.st_ino
