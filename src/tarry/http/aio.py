"""aiohttp: a session of the caller's, or our own; each request goes out once."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from functools import lru_cache
from ipaddress import IPv4Address
from typing import Any

import aiohttp
from yarl import URL

from tarry.core.origin import OriginError, origin_of
from tarry.errors import SpecError
from tarry.http.exchange import ENCODING, Call, NotSent
from tarry.http.idle import KEPT, Kept, idle_bound
from tarry.ports import Clock, Prepared
from tarry.words import SECOND, CallKind, ErrorKind

IN_FLIGHT = 64
"""Calls at once."""

_MAX_HEADER = 64 << 10  # bytes of one
_AS_IT_COMES: dict[str, Any] = {
    "raise_for_status": False,
    "auto_decompress": False,
    "max_line_size": _MAX_HEADER,
    "max_field_size": _MAX_HEADER,
}
"""How a session takes answers in: whatever their status, as they are packed."""

_POOL_SHARE = 0.9  # of the call's time, so that a full pool or a slow connection is noticed before the call is cut
_NO_TYPE = ("Content-Type",)  # of a request without a body
_DIGITS_AND_DOTS = re.compile(r"[0-9.]+")


class GivenSession:
    """Sends over the caller's session, with its headers, cookies, auth and middlewares; never closes it."""

    def __init__(self, session: Any) -> None:
        if not hasattr(session, "_middlewares"):
            raise SpecError("client", "aiohttp is too old to send a request once only; 3.12.8 or newer is needed")
        self._session = session

    @property
    def in_flight(self) -> int:
        return IN_FLIGHT

    async def send(self, request: Prepared, call: Call) -> None:
        if self._session.closed:
            raise NotSent(ErrorKind.CONNECT, "the client is closed")
        # A middleware of a call replaces those of the session, so theirs are named here, around ours.
        around = self._session._middlewares  # noqa: SLF001  # nothing else names them
        headers, has_waited = [*request.headers, ENCODING], _is_full(self._session.connector)
        response = await _sent(self._session, request, headers, call, around, **_AS_IT_COMES)
        if has_waited:
            call.leave()  # nothing told when it had its connection
        await _read(response, call)

    async def aclose(self) -> None:
        """Nothing: the session is the caller's."""


class OwnSession:
    """Sends over sessions of our own: no proxy from the environment, no cookies, no redirects, no auth.

    The second session keeps no connection; it is for the calls whose connection the first has no place for.
    """

    def __init__(self, clock: Clock) -> None:
        self._sessions: dict[bool, aiohttp.ClientSession] = {}
        self._kept = Kept(clock, idle_bound())

    @property
    def in_flight(self) -> int:
        return IN_FLIGHT

    async def send(self, request: Prepared, call: Call) -> None:
        with self._kept.held(_url(request.url).authority) as is_kept:
            session = self._sessions.get(is_kept) or self._begun(is_kept=is_kept)
            await _read(await _sent(session, request, request.headers, call), call)

    async def aclose(self) -> None:
        sessions, self._sessions = self._sessions, {}
        for session in sessions.values():
            await session.close()

    def _begun(self, *, is_kept: bool) -> aiohttp.ClientSession:
        keeping: dict[str, Any] = {"keepalive_timeout": KEPT / SECOND} if is_kept else {"force_close": True}
        session = self._sessions[is_kept] = aiohttp.ClientSession(
            connector=aiohttp.TCPConnector(limit=0, **keeping),
            headers=[ENCODING],
            cookie_jar=aiohttp.DummyCookieJar(),  # one job's cookies are not another's
            trust_env=False,
            **_AS_IT_COMES,
        )
        return session


async def _sent(
    session: Any,
    request: Prepared,
    headers: Iterable[tuple[str, str]],
    call: Call,
    around: Sequence[Any] = (),
    **unlike: Any,
) -> Any:
    """The open response; `unlike` is what the session would do otherwise by itself."""
    url = _url(request.url)
    call.left = False
    try:
        return await session.request(
            request.method,
            url,
            data=request.content,
            headers=headers,
            allow_redirects=False,
            skip_auto_headers=None if request.method == "GET" else _NO_TYPE,
            timeout=_timeout(request.timeout, request.connect_timeout, request.read_timeout),
            middlewares=(*around, _Once(call, url, is_poll=request.kind is CallKind.POLL)),
            **unlike,
        )
    except _Broken as broken:
        raise broken.error from None
    except aiohttp.ConnectionTimeoutError as error:
        if _is_full(session.connector):
            raise NotSent(ErrorKind.POOL, "no free connection here") from error
        raise


async def _read(response: Any, call: Call) -> None:
    """Have the answer read, and give the connection back, or give it up where reading stopped early."""
    content = response.content
    try:
        # A small body has come with its head, and aiohttp has given the connection back by then.
        body = content.read_nowait() if content.is_eof() else content.iter_any()
        await call.read(response.status, response.raw_headers, body)
    finally:
        if not response.closed:
            (response.release if content.at_eof() else response.close)()


class _Broken(Exception):
    """The connection broke: an error that aiohttp does not take for a reason to send again."""

    def __init__(self, error: Exception) -> None:
        super().__init__()
        self.error = error


class _Once:
    """The innermost middleware: lets the call out once, whatever aiohttp and the middlewares around it make of it.

    One that answers a 401 by asking again (digest) is given the same answer again, so that the next
    poll goes out with what it has learned. What it asks for elsewhere, a token, is sent.
    """

    __slots__ = ("_answer", "_call", "_is_poll", "_url")

    def __init__(self, call: Call, url: URL, *, is_poll: bool) -> None:
        self._call = call
        self._url = url
        self._is_poll = is_poll
        self._answer: Any = None

    async def __call__(self, request: Any, onward: Any) -> Any:
        url = request.url
        is_the_call = url is self._url or url == self._url or url.with_query(None) == self._url.with_query(None)
        if is_the_call and self._is_poll and self._answer is not None:
            return self._answer
        try:
            answer = await onward(request)
        except BaseException as error:
            # Where aiohttp should stop to set this, whatever breaks off counts as sent.
            self._call.left = getattr(request, "response", request) is not None
            if isinstance(error, aiohttp.ClientOSError | aiohttp.ServerDisconnectedError):
                raise _Broken(error) from error
            raise
        if is_the_call:
            self._call.left, self._answer = True, answer
        return answer


@lru_cache(1_024)
def _url(text: str) -> URL:
    """The URL as it stands, not quoted anew: its query may be signed."""
    try:
        origin_of(text)
        url = URL(text, encoded=True)
        _check_host(url.raw_host or "")
    except OriginError as refused:
        raise NotSent(ErrorKind.REFUSED, str(refused)) from None
    except ValueError:
        raise NotSent(ErrorKind.REFUSED, "the URL names no possible host") from None
    return url


@lru_cache(1_024)
def _check_host(host: str) -> None:
    """ValueError for digits that are no address: the system would read 0177.0.0.1 as another one."""
    if _DIGITS_AND_DOTS.fullmatch(host):
        IPv4Address(host)


@lru_cache(64)
def _timeout(whole: int, connect: int | None, read: int | None) -> aiohttp.ClientTimeout:
    """The bounds of the parts of a call; that of the whole call is held by the transport."""
    return aiohttp.ClientTimeout(
        total=None,
        connect=whole * _POOL_SHARE / SECOND,
        sock_connect=min(connect or whole, whole * _POOL_SHARE) / SECOND,
        sock_read=None if read is None else read / SECOND,
        ceil_threshold=whole / SECOND,  # never rounded up: that could be past the call's bound
    )


def _is_full(connector: Any) -> bool:
    """Whether all connections that the session's owner allows are taken; no public name tells."""
    return bool(0 < connector.limit <= len(getattr(connector, "_acquired", ())))
