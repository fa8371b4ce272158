"""What went wrong with a request: told apart by what can be done about it, in words for people."""

import math
import re
import socket
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from email.utils import parsedate_to_datetime
from enum import StrEnum
from http import HTTPStatus
from typing import Final

from loopctl.redaction import Redactor
from loopctl.worker.model.lite import library
from loopctl.worker.model.routes import Attempt


class FailureKind(StrEnum):
    """What to do about it."""

    PASSING = "passing"
    """Try again after a while: rate limits, a provider that fails, connections that break."""
    REQUEST = "request"
    """The provider does not take the request as it is: a plainer one may do."""
    OVERFLOW = "overflow"
    """The prompt is too long for the model."""
    LASTING = "lasting"
    """Trying again is of no use: wrong key, no credit, no such model."""


@dataclass(frozen=True, slots=True)
class Failure:
    """A request that brought no reply.

    Attributes:
        text: What, which and what to do; one line, no key in it.
        is_billed: The provider may have done the work, and may ask money for it.
        retry_after_s: What the provider asks for; ``None`` where it says nothing.
        is_broken: The reply began and was not whole, or was no sense.
        is_refused: Nothing listens there.
    """

    kind: FailureKind
    text: str
    is_billed: bool = False
    retry_after_s: float | None = None
    is_broken: bool = False
    is_refused: bool = False


_OVERFLOW: Final = re.compile(
    r"context[ _]?(length|window|size)|maximum context|exceed_context|prompt is too long|"
    r"input is too long|too many (input )?tokens|exceeds? the (maximum|max|limit)\D{0,30}tokens|"
    r"request too large",
    re.IGNORECASE,
)
_NO_CREDIT: Final = re.compile(
    r"insufficient_quota|insufficient balance|exceeded your current quota|credit balance",
    re.IGNORECASE,
)
_NO_PROVIDER: Final = "LLM Provider NOT provided"
_MESSAGE: Final = re.compile(r'"message": *"((?:[^"\\]|\\.)+)"')
_QUOTED: Final = 240
_OVERFLOWS: Final = {
    HTTPStatus.BAD_REQUEST,
    HTTPStatus.REQUEST_ENTITY_TOO_LARGE,
    HTTPStatus.UNPROCESSABLE_ENTITY,
    HTTPStatus.INTERNAL_SERVER_ERROR,
}
_REQUESTS: Final = {HTTPStatus.BAD_REQUEST, HTTPStatus.UNPROCESSABLE_ENTITY}
_KEYS: Final = {HTTPStatus.UNAUTHORIZED, HTTPStatus.FORBIDDEN}
_PASSING: Final = {
    HTTPStatus.REQUEST_TIMEOUT,
    HTTPStatus.CONFLICT,
    HTTPStatus.TOO_EARLY,
    HTTPStatus.TOO_MANY_REQUESTS,
}
_GATEWAYS: Final = {HTTPStatus.BAD_GATEWAY, HTTPStatus.GATEWAY_TIMEOUT}
"""Here something between may have given up on a provider that did the work."""


def failure_of(error: Exception, attempt: Attempt, redact: Redactor, now: datetime) -> Failure:
    """Return what an exception of the library means.

    Args:
        error: Whatever the library raised.
        attempt: The model that was asked.
        redact: Takes keys out of what is quoted.
        now: For a ``Retry-After`` that is a date.
    """
    error = _answered(error)
    return _of_connection(error, attempt, redact) or _of_status(error, attempt, redact, now)


def _answered(error: Exception) -> Exception:
    """Return the provider's answer where a stream never began; some adapters hide it so."""
    origin = getattr(error, "original_exception", None)
    return origin if isinstance(origin, Exception) and _headers(origin) else error


def _of_connection(error: Exception, attempt: Attempt, redact: Redactor) -> Failure | None:
    import httpx  # noqa: PLC0415  # comes with LiteLLM, which is there by now
    import openai  # noqa: PLC0415

    chain = tuple(_chain(error))
    where = redact(attempt.where)
    passing = FailureKind.PASSING
    if any(isinstance(link, socket.gaierror) for link in chain):
        return Failure(
            passing,
            f"{attempt.model}: the host of {where} is not found; check the network and api_base",
        )
    if any(isinstance(link, ConnectionRefusedError) for link in chain):
        return Failure(
            passing,
            f"{attempt.model}: nothing listens at {where}; start the server, or correct api_base",
            is_refused=True,
        )
    if any(isinstance(link, httpx.ConnectError | httpx.ConnectTimeout) for link in chain):
        text = f"{attempt.model}: no connection to {where}; check the network and api_base"
        return Failure(passing, text)
    if isinstance(error, EOFError | library().exceptions.MidStreamFallbackError):
        text = f"{attempt.model} at {where} broke off its reply; see whether the server is well"
        return Failure(passing, text, is_billed=True, is_broken=True)
    if any(isinstance(link, openai.APITimeoutError | httpx.TimeoutException) for link in chain):
        text = f"{attempt.model} at {where} did not answer in time; see whether the server is well"
        return Failure(passing, text, is_billed=True)
    if any(isinstance(link, httpx.TransportError) for link in chain):
        text = f"{attempt.model}: the connection to {where} broke; check the network"
        return Failure(passing, text, is_billed=True)
    return None


def _of_status(error: Exception, attempt: Attempt, redact: Redactor, now: datetime) -> Failure:
    status, headers = _status(error), _headers(error)
    what = f"{attempt.model} at {redact(attempt.where)}"
    said = _said(error, redact)
    if _NO_PROVIDER in str(error):
        text = (
            f"{attempt.model} names no known provider; write it as PROVIDER/MODEL in the settings"
        )
        return Failure(FailureKind.LASTING, text)
    if _is_overflow(error, status):
        return Failure(FailureKind.OVERFLOW, f"the prompt does not fit {attempt.model}: {said}")
    if status in _KEYS:
        return Failure(FailureKind.LASTING, _about_key(what, attempt, status))
    if status == HTTPStatus.PAYMENT_REQUIRED or _NO_CREDIT.search(str(error)):
        whose = f" behind {attempt.key_name}" if attempt.key_name else ""
        text = f"{what}: the account{whose} has no credit left; add some, or name another model"
        return Failure(FailureKind.LASTING, text)
    if status == HTTPStatus.NOT_FOUND:
        text = f"{what} is not there ({said}); correct its name or api_base, or pull the model"
        return Failure(FailureKind.LASTING, text)
    if status in _REQUESTS:
        text = f"{what} refused the request ({said}); see whether it can call tools"
        return Failure(FailureKind.REQUEST, text)
    if status == HTTPStatus.TOO_MANY_REQUESTS:
        text = f"{what} limits its rate ({said}); wait, or name a fallback"
        return Failure(FailureKind.PASSING, text, retry_after_s=retry_after_s(headers, now))
    if status in _PASSING or status >= HTTPStatus.INTERNAL_SERVER_ERROR:
        return _of_server(status, headers, f"{what} fails with status {status} ({said})", now)
    text = f"{what} cannot be asked ({type(error).__name__}: {said}); check the model's settings"
    return Failure(FailureKind.LASTING, text, is_billed=True)


def _of_server(status: int, headers: Mapping[str, str], text: str, now: datetime) -> Failure:
    # Without headers there was no such answer: the library says 500 of replies that are no sense.
    is_broken = status == HTTPStatus.INTERNAL_SERVER_ERROR and not headers
    return Failure(
        FailureKind.PASSING,
        f"{text}; see whether the provider is well, or name a fallback",
        is_billed=is_broken or status in _GATEWAYS or status in _PASSING,
        retry_after_s=retry_after_s(headers, now),
        is_broken=is_broken,
    )


def retry_after_s(headers: Mapping[str, str], now: datetime) -> float | None:
    """Return the seconds that ``Retry-After`` asks for, not below 0; ``None`` where it does not."""
    found = {name.lower(): str(value).strip() for name, value in headers.items()}
    for name, unit_s in (("retry-after-ms", 0.001), ("retry-after", 1.0)):
        text = found.get(name, "")
        try:
            seconds = float(text) * unit_s
        except ValueError:
            continue
        if math.isfinite(seconds):
            return max(0.0, seconds)
    try:
        moment = parsedate_to_datetime(found.get("retry-after", ""))
    except ValueError:
        return None
    return max(0.0, (moment.replace(tzinfo=moment.tzinfo or UTC) - now).total_seconds())


def _about_key(what: str, attempt: Attempt, status: int) -> str:
    if attempt.key_name is None:
        return (
            f"{what} wants a key (status {status}); name the variable that holds it in api_key_env"
        )
    return f"{what} refused the key in {attempt.key_name} (status {status}); set a valid one"


def _is_overflow(error: Exception, status: int) -> bool:
    if isinstance(error, library().exceptions.ContextWindowExceededError):
        return True
    return status in _OVERFLOWS and _OVERFLOW.search(str(error)) is not None


def _said(error: Exception, redact: Redactor) -> str:
    """Return what the provider said: one line, short, without keys."""
    text = str(error).rpartition("Exception - ")[2]
    message = _MESSAGE.search(text)
    text = " ".join(redact(message[1] if message else text).split())
    return text if len(text) <= _QUOTED else f"{text[:_QUOTED]}..."


def _status(error: Exception) -> int:
    status = getattr(error, "status_code", None)
    return status if isinstance(status, int) else 0


def _headers(error: Exception) -> Mapping[str, str]:
    response = getattr(error, "response", None)
    own = getattr(error, "litellm_response_headers", None)
    return dict(own or getattr(response, "headers", None) or {})


def _chain(error: BaseException) -> Iterator[BaseException]:
    """Yield an exception and all that led to it."""
    seen: list[BaseException] = []
    links: list[BaseException | None] = [error]
    while links:
        link = links.pop()
        if link is None or any(link is other for other in seen):
            continue
        seen.append(link)
        yield link
        links += [link.__cause__, link.__context__, getattr(link, "original_exception", None)]
