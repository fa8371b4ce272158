"""One open connection with a server: greeting, listing, calls. Lives in the loop's thread."""

import logging
import math
from collections.abc import Callable, Mapping
from concurrent.futures import Future
from contextlib import AbstractAsyncContextManager
from dataclasses import dataclass
from typing import Any, Final, cast

import anyio
from mcp import ClientSession, MCPError, types
from pydantic import ValidationError

from loopctl import __version__
from loopctl.calls import Annotations
from loopctl.errors import EnvironmentFaultError, LoopctlError, SandboxError
from loopctl.sandbox.mcp.listing import MAX_TOOLS, ListedTool
from loopctl.sandbox.mcp.refusals import GONE, NOT_DONE, UNCLEAR
from loopctl.sandbox.mcp.texts import one_line

KEY: Final = "idempotencyKey"
"""In ``_meta`` of a call: what a sink that keeps keys knows the call by."""

_TOO_NEW: Final = frozenset({types.UNSUPPORTED_PROTOCOL_VERSION, types.METHOD_NOT_FOUND})
_TRANSPORT_SAYS: Final = (
    "Connection closed",
    "SSE stream ",
    "Failed to parse ",
    "Unexpected content type",
    "server answered a request with 202",
)
_SHOWN: Final = 400

# What the SDK has to say of a server is told by us; without this it would write to the terminal.
for _name in ("mcp", "client", "httpx2"):
    logging.getLogger(_name).addHandler(logging.NullHandler())


@dataclass(frozen=True, slots=True)
class Refused:
    """The server, or its door, has said that a call cannot be made, or has not worked."""

    reason: str


@dataclass(frozen=True, slots=True)
class Lost:
    """Nobody knows what came of a call that was sent."""

    reason: str


Answer = types.CallToolResult | Refused | Lost


class Connection:
    """Opened by :meth:`serve`, which goes on until :meth:`stop` or the loss of the server.

    Args:
        streams: Returns what the session reads and writes, opened.
        timeout_s: For all of the opening, and for each request afterwards.

    Attributes:
        opened: Set when the tools were listed, or to the error that kept them from being.
        has_changed: The server says that its tools are others now.
        is_lost: It is of no use any more; a new one may be.
        is_forgotten: That is so because the server has forgotten the session, as it may after a
            while or when it was started again; what it was asked last was not carried out.
    """

    def __init__(
        self, streams: Callable[[], AbstractAsyncContextManager[Any]], timeout_s: float
    ) -> None:
        self._streams = streams
        self._timeout_s = timeout_s
        self._session: ClientSession | None = None
        self._stop: anyio.Event | None = None
        self.opened: Future[tuple[ListedTool, ...]] = Future()
        self.has_changed = False
        self.is_lost = False
        self.is_forgotten = False

    async def serve(self) -> None:
        """Hold the connection open; never raises for what a server does."""
        fault: LoopctlError = EnvironmentFaultError("was ended before it had answered")
        self._stop = anyio.Event()
        try:
            deadline = anyio.current_time() + self._timeout_s
            with anyio.CancelScope(deadline=deadline) as scope:
                await self._hold(scope)
            if scope.cancelled_caught:
                fault = EnvironmentFaultError(f"gave no answer within {self._timeout_s:g} seconds")
        except Exception as error:  # noqa: BLE001 - the SDK raises whatever its parts raise
            fault = _fault(error)
        finally:
            self.is_lost = True
            if not self.opened.done():
                self.opened.set_exception(fault)

    async def stop(self) -> None:
        """Have :meth:`serve` end."""
        self.is_lost = True
        if self._stop is not None:
            self._stop.set()

    async def tools(self) -> tuple[ListedTool, ...]:
        """Return what the server lists now.

        Raises:
            EnvironmentFaultError: It does not end, is too long, or cannot be had; says why.
        """
        self.has_changed = False
        try:
            with anyio.fail_after(self._timeout_s):
                return await self._list(self._require())
        except Exception as error:
            self.is_lost = True
            self.is_forgotten = isinstance(error, MCPError) and error.code == GONE
            raise _fault(error) from error

    async def call(self, name: str, arguments: Mapping[str, Any], key: str) -> Answer:
        """Return what the server answered, or why there is no answer; never raises for those."""
        params = types.CallToolRequestParams(
            name=name, arguments=dict(arguments), _meta=cast("types.RequestParamsMeta", {KEY: key})
        )
        try:
            with anyio.fail_after(self._timeout_s):
                # Not `call_tool`: that has an opinion on the result, and the effect has happened.
                return await self._require().send_request(
                    types.CallToolRequest(params=params), types.CallToolResult
                )
        except TimeoutError:
            return Lost(f"its server gave no answer within {self._timeout_s:g} seconds")
        except MCPError as error:
            return self._answered(error)
        except ValidationError:
            return Lost("its server answered with what is no result of a tool")
        except Exception as error:  # noqa: BLE001 - the SDK raises whatever its parts raise
            self.is_lost = True
            return Lost(f"the connection to its server broke: {_words(error)}")

    def _answered(self, error: MCPError) -> Refused | Lost:
        reason = one_line(error.message, _SHOWN) or f"answered with the error {error.code}"
        if error.code == types.CONNECTION_CLOSED and error.message == "Connection closed":
            self.is_lost = True
            return Lost("its server ended, or broke the connection off")
        if error.code == GONE:
            self.is_lost = self.is_forgotten = True
        if error.code == UNCLEAR or error.message.startswith(_TRANSPORT_SAYS):
            return Lost(reason)
        return Refused(reason)

    async def _hold(self, scope: anyio.CancelScope) -> None:
        about = types.Implementation(name="loop", version=__version__)
        async with (
            self._streams() as (read, write),
            ClientSession(read, write, message_handler=self._heed, client_info=about) as session,
        ):
            await _greet(session)
            self._session = session
            listed = await self._list(session)
            scope.deadline = math.inf
            self.opened.set_result(listed)
            if self._stop is not None:
                await self._stop.wait()

    async def _list(self, session: ClientSession) -> tuple[ListedTool, ...]:
        capabilities = session.server_capabilities
        if capabilities is None or capabilities.tools is None:
            return ()
        found: list[ListedTool] = []
        cursor: str | None = None
        seen: set[str] = set()
        while True:
            page = await session.list_tools(params=types.PaginatedRequestParams(cursor=cursor))
            found += [_listed(tool) for tool in page.tools]
            if len(found) > MAX_TOOLS:
                raise EnvironmentFaultError(
                    f"lists more than {MAX_TOOLS} tools, which is more than a model can be shown"
                )
            cursor = page.next_cursor
            if not cursor:
                return tuple(found)
            if cursor in seen:
                raise EnvironmentFaultError("lists its tools in a circle")
            seen.add(cursor)

    async def _heed(self, message: Any) -> None:
        if isinstance(message, types.ToolListChangedNotification):
            self.has_changed = True

    def _require(self) -> ClientSession:
        if self._session is None:
            raise EnvironmentFaultError("is not connected")
        return self._session


async def _greet(session: ClientSession) -> None:
    """Agree on a version. Every server knows the handshake but the very newest."""
    try:
        await session.initialize()
    except MCPError as error:
        if error.code not in _TOO_NEW:
            raise
        await session.discover()


def _listed(tool: types.Tool) -> ListedTool:
    hints = tool.annotations or types.ToolAnnotations()
    is_read_only = hints.read_only_hint is True
    return ListedTool(
        name=tool.name,
        description=tool.description or tool.title or "",
        parameters=tool.input_schema,
        annotations=Annotations(
            read_only=is_read_only,
            destructive=not is_read_only and hints.destructive_hint is not False,
            idempotent=hints.idempotent_hint is True,
        ),
    )


def _fault(error: Exception) -> LoopctlError:
    """Return what a server has done, as the predicate of a sentence about it."""
    while isinstance(error, ExceptionGroup):
        error = error.exceptions[0]
    if isinstance(error, EnvironmentFaultError | SandboxError):
        return error
    if isinstance(error, TimeoutError):
        return EnvironmentFaultError("gave no answer in time")
    if isinstance(error, MCPError):
        if error.code in {NOT_DONE, UNCLEAR, GONE}:
            return EnvironmentFaultError(f"cannot be used: {one_line(error.message, _SHOWN)}")
        if error.message == "Connection closed":
            return EnvironmentFaultError("ended before it had answered")
    return EnvironmentFaultError(f"does not speak the protocol: {_words(error)}")


def _words(error: Exception) -> str:
    if isinstance(error, ValidationError):
        return "an answer has not the form that it must have"
    return one_line(str(error), _SHOWN) or type(error).__name__
