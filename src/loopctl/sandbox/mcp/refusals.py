"""Why an answer of HTTP is none of the protocol, and whether its request may have been carried out.

What a person can mend is told with the setting that mends it.
"""

import json
import re
import ssl
from collections.abc import Mapping
from dataclasses import dataclass, field
from http import HTTPStatus
from typing import Any, Final

import httpx2

NOT_DONE: Final = 40_000
"""The code of an error for a request that the server surely did not carry out."""
UNCLEAR: Final = 50_000
"""The code of an error for a request that it may have carried out."""
GONE: Final = 40_400
"""Like ``NOT_DONE``; and the server has forgotten the session."""

SESSION: Final = "mcp-session-id"

_NO_ENTRY: Final = frozenset({HTTPStatus.UNAUTHORIZED, HTTPStatus.FORBIDDEN})
# The others may stand for what has happened: 303 says so, and 302 was long used as if it did.
_ELSEWHERE: Final = frozenset(
    {
        HTTPStatus.MOVED_PERMANENTLY,
        HTTPStatus.TEMPORARY_REDIRECT,
        HTTPStatus.PERMANENT_REDIRECT,
    }
)
_OF_A_SESSION: Final = re.compile(rb"session|initiali[sz]ed", re.IGNORECASE)

Refusal = tuple[int, str]
"""One of the codes, and why."""


@dataclass(frozen=True, slots=True)
class Named:
    """What the settings call a server.

    Attributes:
        table: ``[mcp.NAME]``.
        keys: The variables that its headers hold, by header.
    """

    table: str
    keys: Mapping[str, str] = field(default_factory=dict)


def unsent(error: httpx2.TransportError, named: Named) -> Refusal:
    """Return why a request that was surely not sent was not."""
    fault = _tls(error)
    if fault is None:
        return NOT_DONE, f"the server cannot be reached: {said(error)}"
    return NOT_DONE, (
        f"no encrypted connection can be made: {fault}; correct url in {named.table}, or have this "
        "machine trust the server's certificate"
    )


async def refusal(
    request: httpx2.Request, response: httpx2.Response, named: Named
) -> Refusal | None:
    """Return why a response is no answer of the protocol; ``None`` where it may be one.

    Raises:
        httpx2.TransportError: The connection was lost.
    """
    status = response.status_code
    if HTTPStatus.MULTIPLE_CHOICES <= status < HTTPStatus.BAD_REQUEST:
        return _redirected(response, named)
    if status < HTTPStatus.BAD_REQUEST:
        return None
    if status in _NO_ENTRY:
        return NOT_DONE, f"{_answered(response)}; {_keys(named)}"
    if status == HTTPStatus.NOT_FOUND and SESSION in request.headers:
        return GONE, "the server has forgotten the session"
    error = await _protocol_error(response)
    if error is not None and _is_answer(error, status):
        return None
    words = error["error"].get("message") if error is not None else None
    more = f": {words}" if isinstance(words, str) else ""
    return _code(status), f"{_answered(response)}{more}"


async def is_about_session(request: httpx2.Request, response: httpx2.Response) -> bool:
    """Tell whether a 400 may stand for the 404 of a session that was forgotten.

    Many servers answer so. It is no proof: the words may be about something else.

    Raises:
        httpx2.TransportError: The connection was lost.
    """
    if response.status_code != HTTPStatus.BAD_REQUEST or SESSION not in request.headers:
        return False
    try:
        return _OF_A_SESSION.search(await response.aread()) is not None
    except httpx2.StreamError:
        return False


def is_refused_session(response: httpx2.Response) -> bool:
    """Tell whether that is how servers answer what is asked in a session that they do not know."""
    return response.status_code in {HTTPStatus.BAD_REQUEST, HTTPStatus.NOT_FOUND}


def said(error: Exception) -> str:
    """Return an error's words, or at least its name."""
    return str(error) or type(error).__name__


def kind(response: httpx2.Response) -> str:
    """Return the media type of a body, without its parameters."""
    return response.headers.get("content-type", "").partition(";")[0].strip().lower()


def _redirected(response: httpx2.Response, named: Named) -> Refusal:
    code = NOT_DONE if response.status_code in _ELSEWHERE else UNCLEAR
    to = response.next_request
    # The rest of it may hold a key.
    where = to.url.copy_with(userinfo=b"", query=None, fragment=None) if to else "nowhere"
    return code, (
        f"{_answered(response)}, which leads to {where} and is not followed; if the server is "
        f"there, correct url in {named.table}"
    )


def _keys(named: Named) -> str:
    if not named.keys:
        return f"name the variable that holds a key for it in headers_env of {named.table}"
    variables = " or ".join(dict.fromkeys(named.keys.values()))
    return f"set a valid key in {variables} (headers_env of {named.table})"


def _answered(response: httpx2.Response) -> str:
    return f"the server answered with {response.status_code} {response.reason_phrase}".strip()


def _code(status: int) -> int:
    return UNCLEAR if status >= HTTPStatus.INTERNAL_SERVER_ERROR else NOT_DONE


async def _protocol_error(response: httpx2.Response) -> dict[str, Any] | None:
    """Return the error of the protocol in a body, if it is one."""
    if kind(response) != "application/json":
        return None
    try:
        body = json.loads(await response.aread())
    except (ValueError, RecursionError, httpx2.StreamError):
        return None
    return body if isinstance(body, dict) and isinstance(body.get("error"), dict) else None


def _is_answer(error: Mapping[str, Any], status: int) -> bool:
    """Tell whether the transport can make an answer of it.

    It needs an id. Without that of the request a 500 may be of any moment of it.
    """
    if status >= HTTPStatus.INTERNAL_SERVER_ERROR:
        return error.get("id") is not None
    return "id" in error


def _tls(error: BaseException) -> str | None:
    """Return what was wrong with TLS in a few words; ``None`` where nothing was."""
    cause: BaseException | None = error
    while cause is not None:
        if isinstance(cause, ssl.SSLError):
            verified = getattr(cause, "verify_message", "")
            reason = (cause.reason or said(cause)).replace("_", " ").lower()
            return f"{reason}: {verified}" if verified else reason
        cause = cause.__cause__ or cause.__context__
    return None
