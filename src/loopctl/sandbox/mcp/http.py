"""The streams of a server that is reached by HTTP, with an end to waiting and to what is taken.

The SDK's transport tells a call neither why HTTP failed nor whether anything was sent, and one
failure would end the connection for all. So each failure is made the answer of its own request.
"""

import contextlib
import json
from collections.abc import AsyncIterator, Mapping
from http import HTTPStatus
from typing import Any, Final, cast

import httpx2
from mcp.client.streamable_http import streamable_http_client

from loopctl.sandbox.mcp import refusals
from loopctl.sandbox.mcp.refusals import GONE, SESSION, UNCLEAR, Named, Refusal
from loopctl.sandbox.mcp.stdio import MAX_MESSAGE_BYTES

_CONNECT_S: Final = 15.0
_QUIET_S: Final = 300.0
_MAX_ERROR_BYTES: Final = 64 << 10
_UNSENT: Final = (
    httpx2.ConnectError,
    httpx2.ConnectTimeout,
    httpx2.PoolTimeout,
    httpx2.ProxyError,
    httpx2.UnsupportedProtocol,
)
_OF_THE_SESSION: Final = (SESSION, "mcp-protocol-version", "accept")
_PROBE: Final = {"jsonrpc": "2.0", "id": "still-known", "method": "tools/list"}


@contextlib.asynccontextmanager
async def http_streams(
    url: str, headers: Mapping[str, str], *, named: Named, timeout_s: float, is_loopback: bool
) -> AsyncIterator[Any]:
    """Yield a session's two streams.

    Args:
        url: Of the server's endpoint.
        headers: Sent with every request, and nowhere else: no redirect is followed.
        named: What a person knows the server by.
        timeout_s: For one answer.
        is_loopback: A proxy of the environment has no business with it.
    """
    client = _Client(
        named,
        # Compressed, an answer of any size would pass for a small one.
        headers={**headers, "accept-encoding": "identity"},
        timeout=httpx2.Timeout(
            min(timeout_s, _CONNECT_S), read=max(timeout_s, _QUIET_S), write=timeout_s
        ),
        trust_env=not is_loopback,
    )
    async with (
        client,
        streamable_http_client(
            url, http_client=client, max_sse_event_size=MAX_MESSAGE_BYTES
        ) as streams,
    ):
        yield streams


class _Client(httpx2.AsyncClient):
    """Sends requests; those of the protocol get an answer of the protocol, whatever happens."""

    def __init__(self, named: Named, **options: Any) -> None:
        super().__init__(**options)
        self._named = named

    async def send(self, request: httpx2.Request, **options: Any) -> httpx2.Response:
        asked = _asked(request)
        if asked is None:
            response = await super().send(request, **options)
            # The transport would follow it within the same host; another path is another door.
            response.next_request = None
            return response
        try:
            response = await super().send(request, **options)
        except _UNSENT as error:
            return _error(request, asked, *refusals.unsent(error, self._named))
        except httpx2.TransportError as error:
            return _error(request, asked, *_lost(error))
        try:
            refusal = await self._refusal(request, response)
        except httpx2.TransportError as error:
            refusal = _lost(error)
        if refusal is None:
            return response
        await response.aclose()
        return _error(request, asked, *refusal)

    async def _refusal(self, request: httpx2.Request, response: httpx2.Response) -> Refusal | None:
        """Return why a response is no answer; ``None`` where it may be one."""
        encoding = response.headers.get("content-encoding", "identity")
        if encoding != "identity":
            why = f"the server answered in the encoding {encoding}, which was not asked for"
            return UNCLEAR, why
        _bound(response)
        if await refusals.is_about_session(request, response) and await self._is_gone(request):
            return GONE, "the server has forgotten the session"
        return await refusals.refusal(request, response, self._named)

    async def _is_gone(self, request: httpx2.Request) -> bool:
        """Tell whether the server knows nothing of the session that a request was sent in.

        The tools of any server can be listed, and that has no effect. Where it is refused as well,
        it was the session that was, and so the request was not carried out.
        """
        kept = {name: request.headers[name] for name in _OF_THE_SESSION if name in request.headers}
        probe = self.build_request("POST", request.url, headers=kept, json=_PROBE)
        try:
            response = await super().send(probe, stream=True, follow_redirects=False)
        except httpx2.TransportError:
            return False
        await response.aclose()
        return refusals.is_refused_session(response)


def _asked(request: httpx2.Request) -> int | str | None:
    """Return the id of the request of the protocol in an HTTP request, if there is one."""
    if request.method != "POST":
        return None
    try:
        found = json.loads(request.content).get("id")
    except (ValueError, AttributeError, httpx2.RequestNotRead):
        return None
    return found if isinstance(found, int | str) else None


def _lost(error: httpx2.TransportError) -> Refusal:
    return UNCLEAR, f"the connection was lost: {refusals.said(error)}"


def _bound(response: httpx2.Response) -> None:
    """Let no more be read of a body than may be; a stream of events has bounds of its own."""
    if refusals.kind(response) == "text/event-stream":
        return
    is_error = response.status_code >= HTTPStatus.BAD_REQUEST
    limit = _MAX_ERROR_BYTES if is_error else MAX_MESSAGE_BYTES
    response.stream = _Bounded(cast("httpx2.AsyncByteStream", response.stream), limit)


def _error(request: httpx2.Request, asked: int | str, code: int, message: str) -> httpx2.Response:
    body = {"jsonrpc": "2.0", "id": asked, "error": {"code": code, "message": message}}
    return httpx2.Response(200, json=body, request=request)


class _Bounded(httpx2.AsyncByteStream):
    """A body of at most so many bytes; what goes wrong in it is a ``StreamError``."""

    def __init__(self, stream: httpx2.AsyncByteStream, limit: int) -> None:
        self._stream = stream
        self._limit = limit

    async def __aiter__(self) -> AsyncIterator[bytes]:
        taken = 0
        try:
            async for chunk in self._stream:
                taken += len(chunk)
                if taken > self._limit:
                    raise httpx2.StreamError(f"it is larger than {self._limit} bytes")
                yield chunk
        except httpx2.TransportError as error:
            raise httpx2.StreamError(refusals.said(error)) from error

    async def aclose(self) -> None:
        await self._stream.aclose()
