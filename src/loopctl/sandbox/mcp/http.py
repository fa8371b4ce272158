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

from loopctl.sandbox.mcp.stdio import MAX_MESSAGE_BYTES

NOT_DONE: Final = 40_000
"""The code of an error for a request that the server surely did not carry out."""
UNCLEAR: Final = 50_000
"""The code of an error for a request that it may have carried out."""
GONE: Final = 40_400
"""Like ``NOT_DONE``; and the server has forgotten the session."""

_SESSION: Final = "mcp-session-id"
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


@contextlib.asynccontextmanager
async def http_streams(
    url: str, headers: Mapping[str, str], *, timeout_s: float, is_loopback: bool
) -> AsyncIterator[Any]:
    """Yield a session's two streams.

    Args:
        url: Of the server's endpoint.
        headers: Sent with every request.
        timeout_s: For one answer.
        is_loopback: A proxy of the environment has no business with it.
    """
    client = _Client(
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

    async def send(self, request: httpx2.Request, **options: Any) -> httpx2.Response:
        asked = _asked(request)
        if asked is None:
            return await super().send(request, **options)
        try:
            response = await super().send(request, **options)
        except _UNSENT as error:
            return _error(request, asked, NOT_DONE, f"the server cannot be reached: {_said(error)}")
        except httpx2.TransportError as error:
            return _error(request, asked, UNCLEAR, f"the connection was lost: {_said(error)}")
        try:
            refusal = await _refusal(request, response)
        except httpx2.TransportError as error:
            refusal = (UNCLEAR, f"the connection was lost: {_said(error)}")
        if refusal is None:
            return response
        await response.aclose()
        return _error(request, asked, *refusal)


def _asked(request: httpx2.Request) -> int | str | None:
    """Return the id of the request of the protocol in an HTTP request, if there is one."""
    if request.method != "POST":
        return None
    try:
        found = json.loads(request.content).get("id")
    except (ValueError, AttributeError, httpx2.RequestNotRead):
        return None
    return found if isinstance(found, int | str) else None


async def _refusal(request: httpx2.Request, response: httpx2.Response) -> tuple[int, str] | None:
    """Return why a response is no answer, with a code; ``None`` where it may be one."""
    encoding = response.headers.get("content-encoding", "identity")
    if encoding != "identity":
        return UNCLEAR, f"the server answered in the encoding {encoding}, which was not asked for"
    kind = response.headers.get("content-type", "").partition(";")[0].strip().lower()
    if kind != "text/event-stream":
        is_error = response.status_code >= HTTPStatus.BAD_REQUEST
        limit = _MAX_ERROR_BYTES if is_error else MAX_MESSAGE_BYTES
        response.stream = _Bounded(cast("httpx2.AsyncByteStream", response.stream), limit)
    if response.status_code < HTTPStatus.BAD_REQUEST:
        return None
    if response.status_code == HTTPStatus.NOT_FOUND and _SESSION in request.headers:
        return GONE, "the server has forgotten the session"
    if kind == "application/json" and await _is_protocol_error(response):
        return None
    text = f"the server answered with {response.status_code} {response.reason_phrase}".strip()
    if response.status_code >= HTTPStatus.INTERNAL_SERVER_ERROR:
        return UNCLEAR, text
    return NOT_DONE, text


async def _is_protocol_error(response: httpx2.Response) -> bool:
    try:
        body = json.loads(await response.aread())
    except (ValueError, RecursionError, httpx2.StreamError):
        return False
    return isinstance(body, dict) and isinstance(body.get("error"), dict)


def _error(request: httpx2.Request, asked: int | str, code: int, message: str) -> httpx2.Response:
    body = {"jsonrpc": "2.0", "id": asked, "error": {"code": code, "message": message}}
    return httpx2.Response(200, json=body, request=request)


def _said(error: Exception) -> str:
    return str(error) or type(error).__name__


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
            raise httpx2.StreamError(_said(error)) from error

    async def aclose(self) -> None:
        await self._stream.aclose()
