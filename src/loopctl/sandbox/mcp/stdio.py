"""The streams of a server that is a process: one JSON-RPC message a line, on its pipes.

The SDK would start the process itself, with its own ideas of environment, folder and end; so it is
given streams instead.
"""

import contextlib
import os
from collections.abc import AsyncIterator, Callable
from typing import Final

import anyio
from anyio import to_thread
from anyio.streams.memory import MemoryObjectReceiveStream, MemoryObjectSendStream
from mcp.shared.message import SessionMessage
from mcp.types import jsonrpc_message_adapter

from loopctl.sandbox.lasting import LastingProcess
from loopctl.sandbox.mcp.texts import ending, one_line

MAX_MESSAGE_BYTES: Final = 16 << 20
MAX_CHATTER: Final = 100
"""Lines on standard output that are no messages: banners and the like are put up with."""
_CHUNK: Final = 1 << 16
_SHOWN: Final = 120
_LAST_WORDS: Final = 1500

Streams = tuple[
    MemoryObjectReceiveStream[SessionMessage | Exception], MemoryObjectSendStream[SessionMessage]
]


class Lines:
    """Cuts a stream of bytes into messages.

    Attributes:
        chatter: The first line that was no message; empty where there was none.
        refusal: Why no more is read of the stream; empty as long as it is.
    """

    def __init__(self) -> None:
        self._rest = bytearray()
        self._chatter = 0
        self.chatter = ""
        self.refusal = ""

    def messages(self, chunk: bytes) -> list[SessionMessage]:
        """Return the messages that are complete with ``chunk``, up to the first refusal."""
        begin = len(self._rest)
        self._rest += chunk
        found: list[SessionMessage] = []
        start = 0
        while not self.refusal and (end := self._rest.find(b"\n", max(start, begin))) >= 0:
            message = self._read(bytes(self._rest[start:end]).strip())
            found += [message] if message else []
            start = end + 1
        del self._rest[:start]
        if len(self._rest) > MAX_MESSAGE_BYTES:
            self.refusal = f"sent a message of more than {MAX_MESSAGE_BYTES >> 20} MiB"
            self._rest.clear()
        return found

    def _read(self, line: bytes) -> SessionMessage | None:
        if not line:
            return None
        text = line.decode("utf-8", "replace")
        try:
            return SessionMessage(jsonrpc_message_adapter.validate_json(text, by_name=False))
        except ValueError:
            pass
        shown = one_line(text[: 4 * _SHOWN], _SHOWN)
        if line.startswith((b"{", b"[")):
            # Perhaps the answer that somebody waits for; waiting on would be in vain.
            self.refusal = f"sent what is no message of the protocol: {shown}"
            return None
        self.chatter = self.chatter or shown
        self._chatter += 1
        if self._chatter > MAX_CHATTER:
            self.refusal = (
                f"writes other things than messages to its standard output: {self.chatter}"
            )
        return None


class ProcessStreams:
    """Starts a server and hands its streams to a session; ends it afterwards.

    Args:
        start: Returns the running process.
    """

    def __init__(self, start: Callable[[], LastingProcess]) -> None:
        self._start = start
        self._process: LastingProcess | None = None
        self._lines = Lines()
        self._code: int | None = None

    @contextlib.asynccontextmanager
    async def open(self) -> AsyncIterator[Streams]:
        """Yield the session's two streams; the first ends when the server's output does.

        Raises:
            EnvironmentFaultError: It cannot be started.
            SandboxError: The folder is gone.
        """
        # In the loop's own thread, which lives as long as the process may.
        process = self._process = self._start()
        heard, read = anyio.create_memory_object_stream[SessionMessage | Exception](0)
        write, said = anyio.create_memory_object_stream[SessionMessage](0)
        try:
            async with heard, read, write, said, anyio.create_task_group() as tasks:
                tasks.start_soon(self._receive, process, heard)
                tasks.start_soon(self._send, process, said)
                tasks.start_soon(self._listen, process)
                try:
                    yield read, write
                finally:
                    tasks.cancel_scope.cancel()
        finally:
            with anyio.CancelScope(shield=True):
                self._code = await to_thread.run_sync(process.end)

    def account(self) -> str:
        """Return what the process has to say for itself, after its end; empty for nothing."""
        if self._process is None:
            return ""
        told = []
        if self._code and not self._process.was_killed:
            told.append(f"It ended with exit code {self._code}.")
        if self._lines.chatter and not self._lines.refusal:
            told.append(f"On its standard output stood: {self._lines.chatter}")
        if words := ending(self._process.last_words(), _LAST_WORDS):
            told.append(f"The end of its standard error: {words}")
        return " ".join(told)

    @property
    def refusal(self) -> str:
        """Why nothing more is read of it; empty where that is not so."""
        return self._lines.refusal

    async def _receive(
        self,
        process: LastingProcess,
        heard: MemoryObjectSendStream[SessionMessage | Exception],
    ) -> None:
        async with heard:
            with contextlib.suppress(anyio.BrokenResourceError, anyio.ClosedResourceError):
                while not self._lines.refusal:
                    await anyio.wait_readable(process.stdout)
                    try:
                        chunk = os.read(process.stdout, _CHUNK)
                    except BlockingIOError:
                        continue
                    if not chunk:
                        return
                    for message in self._lines.messages(chunk):
                        await heard.send(message)

    async def _send(
        self, process: LastingProcess, said: MemoryObjectReceiveStream[SessionMessage]
    ) -> None:
        # A server that has closed its input ends by itself, or is found out by its silence.
        with contextlib.suppress(BrokenPipeError):
            async with said:
                async for item in said:
                    text = item.message.model_dump_json(by_alias=True, exclude_unset=True)
                    left = memoryview(text.encode() + b"\n")
                    while left:
                        await anyio.wait_writable(process.stdin)
                        with contextlib.suppress(BlockingIOError):
                            left = left[os.write(process.stdin, left[:_CHUNK]) :]

    async def _listen(self, process: LastingProcess) -> None:
        goes_on = True
        while goes_on:
            await anyio.wait_readable(process.stderr)
            with contextlib.suppress(BlockingIOError):
                goes_on = process.listen()
