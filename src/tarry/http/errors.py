"""Foreign errors, translated once: whatever httpx, httpx2, aiohttp or the system raises is a `CallError`."""

from __future__ import annotations

import re
import socket
from collections.abc import Iterator
from dataclasses import dataclass

from tarry.core.observation import CallError
from tarry.words import ErrorKind

LIBRARIES = ("httpx", "httpx2", "httpcore", "httpcore2", "aiohttp")
"""Packages whose errors are named below."""

_DETAIL = 200
_UNPRINTABLE = re.compile(r"[^\x20-\x7e]+")


@dataclass(frozen=True, slots=True)
class _Meaning:
    """What an error says: `sent` is False where no byte of the request can have left."""

    kind: ErrorKind
    words: str
    sent: bool = True


_MEANINGS: dict[str, _Meaning] = {
    "ConnectTimeout": _Meaning(ErrorKind.CONNECT, "connecting took too long", sent=False),
    "ConnectError": _Meaning(ErrorKind.CONNECT, "could not connect", sent=False),
    "ProxyError": _Meaning(ErrorKind.CONNECT, "the proxy did not connect", sent=False),
    "PoolTimeout": _Meaning(ErrorKind.POOL, "no free connection here", sent=False),
    "ConnectionNotAvailable": _Meaning(ErrorKind.POOL, "no free connection here", sent=False),
    "InvalidURL": _Meaning(ErrorKind.REFUSED, "the HTTP client takes the URL for invalid", sent=False),
    "UnsupportedProtocol": _Meaning(ErrorKind.REFUSED, "the HTTP client does not know the URL's scheme", sent=False),
    "TimeoutException": _Meaning(ErrorKind.TIMEOUT, "the answer took too long"),
    "ReadTimeout": _Meaning(ErrorKind.TIMEOUT, "reading the answer took too long"),
    "WriteTimeout": _Meaning(ErrorKind.TIMEOUT, "writing the request took too long"),
    "NetworkError": _Meaning(ErrorKind.PROTOCOL, "the connection broke"),
    "RemoteProtocolError": _Meaning(ErrorKind.PROTOCOL, "the answer is not HTTP"),
    "LocalProtocolError": _Meaning(ErrorKind.PROTOCOL, "the request is not HTTP"),
    "DecodingError": _Meaning(ErrorKind.BAD_BODY, "the body could not be unpacked"),
    "TooManyRedirects": _Meaning(ErrorKind.REDIRECT, "too many redirects"),
    "HTTPStatusError": _Meaning(ErrorKind.HTTP_STATUS, "a hook of the HTTP client refused the answer"),
    "CookieConflict": _Meaning(ErrorKind.PROTOCOL, "the HTTP client's cookies are at odds"),
    "StreamError": _Meaning(ErrorKind.PROTOCOL, "the answer was read elsewhere"),
    # Those of aiohttp.
    "ClientConnectorError": _Meaning(ErrorKind.CONNECT, "could not connect", sent=False),
    "ClientConnectorDNSError": _Meaning(ErrorKind.CONNECT, "the host's name could not be resolved", sent=False),
    "ClientProxyConnectionError": _Meaning(ErrorKind.CONNECT, "the proxy did not connect", sent=False),
    "ClientHttpProxyError": _Meaning(ErrorKind.CONNECT, "the proxy did not connect", sent=False),
    "ServerFingerprintMismatch": _Meaning(ErrorKind.CONNECT, "the certificate is another one", sent=False),
    "ConnectionTimeoutError": _Meaning(ErrorKind.CONNECT, "connecting took too long", sent=False),
    "ServerTimeoutError": _Meaning(ErrorKind.TIMEOUT, "the answer took too long"),
    "ClientConnectionError": _Meaning(ErrorKind.PROTOCOL, "the connection broke"),
    "ClientPayloadError": _Meaning(ErrorKind.PROTOCOL, "the body broke off"),
    "ClientResponseError": _Meaning(ErrorKind.PROTOCOL, "the answer is not HTTP"),
    "HttpProcessingError": _Meaning(ErrorKind.PROTOCOL, "the answer is not HTTP"),
    "NonHttpUrlClientError": _Meaning(ErrorKind.REFUSED, "the HTTP client does not know the URL's scheme", sent=False),
    "RedirectClientError": _Meaning(ErrorKind.REDIRECT, "the redirect leads nowhere"),
    # The roots of the trees, for a class that a later version adds.
    "ProtocolError": _Meaning(ErrorKind.PROTOCOL, "the exchange is not HTTP"),
    "ClientError": _Meaning(ErrorKind.PROTOCOL, "the call failed"),
    "HTTPError": _Meaning(ErrorKind.PROTOCOL, "the call failed"),
}
_SYSTEM: tuple[tuple[type[Exception], _Meaning], ...] = (
    (socket.gaierror, _Meaning(ErrorKind.CONNECT, "the host's name could not be resolved", sent=False)),
    (ConnectionRefusedError, _Meaning(ErrorKind.CONNECT, "could not connect", sent=False)),
    (OSError, _Meaning(ErrorKind.PROTOCOL, "the connection broke")),
    # What getaddrinfo and the socket module say of hosts and ports that cannot be.
    (UnicodeError, _Meaning(ErrorKind.REFUSED, "the URL names no possible host", sent=False)),
    (OverflowError, _Meaning(ErrorKind.REFUSED, "the URL names no possible port", sent=False)),
)
_UNKNOWN = _Meaning(ErrorKind.PROTOCOL, "the HTTP client failed")


def translate(error: Exception, where: str) -> CallError:
    """The error as a fact of the call to `where` (an origin); its words are ours, and one line.

    Of the foreign message only the system's own words are taken over: the
    rest may quote headers or URLs, and with them secrets.
    """
    leaf = _leaf(error)
    meaning = _meaning(leaf)
    reason = _system_words(leaf) or type(leaf).__name__
    detail = f"{meaning.words}: {where}: {reason}"
    return CallError(meaning.kind, _UNPRINTABLE.sub(" ", detail)[:_DETAIL], meaning.sent)


def is_known(error: type[Exception]) -> bool:
    """Whether the table has a meaning for this class of one of the libraries."""
    return any(base.__name__ in _MEANINGS for base in error.__mro__ if _is_foreign(base))


def _leaf(error: Exception) -> Exception:
    while isinstance(error, ExceptionGroup):
        error = error.exceptions[0]
    return error


def _meaning(error: Exception) -> _Meaning:
    for base in type(error).__mro__:
        if _is_foreign(base) and base.__name__ in _MEANINGS:
            return _MEANINGS[base.__name__]
    return next((meaning for kind, meaning in _SYSTEM if isinstance(error, kind)), _UNKNOWN)


def _is_foreign(base: type) -> bool:
    return base.__module__.partition(".")[0] in LIBRARIES


def _system_words(error: BaseException) -> str | None:
    """The words of the first system error behind this one, such as "Connection refused"."""
    return next((cause.strerror for cause in _causes(error) if isinstance(cause, OSError) and cause.strerror), None)


def _causes(error: BaseException) -> Iterator[BaseException]:
    left: list[BaseException | None] = [error]
    for _ in range(20):  # chains are short; a bound costs less than proving it
        if not left:
            return
        cause = left.pop()
        if cause is None:
            continue
        yield cause
        left += [cause.__context__, cause.__cause__]
        if isinstance(cause, BaseExceptionGroup):
            left += cause.exceptions
