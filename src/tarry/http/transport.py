"""`HttpTransport`: one prepared request out, one observation in, over httpx or httpx2."""

from __future__ import annotations

import asyncio
import sys
from collections.abc import AsyncIterator, Callable, Iterable, Mapping
from contextlib import AbstractAsyncContextManager, aclosing, asynccontextmanager
from dataclasses import dataclass, field, replace
from http.cookiejar import CookieJar, DefaultCookiePolicy
from typing import Any, Protocol
from urllib.parse import urlsplit

from tarry.core.observation import CallError, Observation
from tarry.errors import SpecError
from tarry.http.body import EMPTY, Body, BodyError, Decoder, parse
from tarry.http.errors import translate
from tarry.http.once import sent_once
from tarry.http.quiet import install, quiet
from tarry.ports import Clock, Prepared
from tarry.words import SECOND, CallKind, ErrorKind

MAX_BODY = 1 << 20
"""Bytes of a decoded body."""

MAX_HEADERS = 64 << 10
"""Bytes of the headers of an answer."""

IN_FLIGHT = 64
"""Calls at once; more wait here, where waiting is told apart from a slow service."""

_IDLE_CONNECTIONS = 4
_POOL_SHARE = 0.9  # of the call's time, so that a full pool is noticed before the call is cut
_NOT_KEPT = frozenset({"set-cookie", "set-cookie2"})


class AsyncClient(Protocol):
    """What httpx and httpx2 have in common, as far as it is used here."""

    @property
    def auth(self) -> Any:
        """What signs its requests; None when nothing does."""
        ...

    def build_request(self, *args: Any, **kwargs: Any) -> Any:
        """A request with the client's own headers and cookies merged in."""
        ...

    async def send(self, request: Any, **kwargs: Any) -> Any:
        """Send it, with the client's own auth."""
        ...

    async def aclose(self) -> None:
        """Close all connections."""
        ...


class HttpTransport:
    """Sends each request once and answers with an observation, whatever happens.

    `client` is an `httpx.AsyncClient` or `httpx2.AsyncClient` of yours: its
    default headers, auth and proxies are used, towards every host that a spec
    names or allows; it is never closed here. Without one, httpx is used with no proxy
    from the environment, no cookies and no redirects. `max_body` bounds a body, decoded,
    in bytes; `redact` takes known secrets out of what is observed, and may be false while it knows none.

    A poll is one request, also when the client's auth would repeat it: the 401 is the
    answer, the auth sees it, and the next poll goes out with what it learned (digest
    does). An auth that needs several requests in a row to the polled URL (NTLM) cannot sign in to a
    poll. Its requests elsewhere, for a token, are sent and are not polls. A call that is no poll is left to the
    auth, which may repeat it: a refused submit ends its job. A transport or `send` of the client that
    repeats requests is not seen here.

    An observation's `url` is the origin and path: a query may hold secrets. `Set-Cookie` is not kept.
    """

    def __init__(
        self,
        client: AsyncClient | None = None,
        *,
        clock: Clock,
        max_body: int = MAX_BODY,
        redact: Callable[[str], str] = str,
    ) -> None:
        if client is not None:
            _library(client)
        install()
        self._given = client
        self._own: Any = None
        self._clock = clock
        self._max_body = max_body
        self._redact = redact
        self._in_flight = asyncio.Semaphore(IN_FLIGHT)

    async def send(self, request: Prepared) -> Observation:
        """Send once. A failure is an observation with an error; only cancellation is raised."""
        client = self._client()
        started = self._clock.now()
        call = _Call()
        with quiet():
            error = await self._bounded(client, request, call)
        return Observation(
            kind=request.kind,
            started_at=started,
            finished_at=self._clock.now(),
            status=call.status,
            headers={name: self._redact(value) for name, value in call.headers.items()},
            body=call.body.value,
            is_json=call.body.is_json,
            url=request.url.partition("?")[0],
            error=error and replace(error, detail=self._redact(error.detail)),
        )

    async def aclose(self) -> None:
        """Close the connections of our own client; a client of the caller's stays open."""
        own, self._own = self._own, None
        if own is not None:
            with quiet():
                await own.aclose()

    async def _bounded(self, client: Any, request: Prepared, call: _Call) -> CallError | None:
        where = _origin(request.url)
        bound = asyncio.timeout(request.timeout / SECOND)
        try:
            async with bound, self._in_flight:
                call.queued = False
                await self._exchange(client, request, call)
        except BodyError as error:
            return error.as_error()
        except Exception as error:  # noqa: BLE001  # the port promises an observation, whatever a library raises
            return call.timed_out(where) if bound.expired() else call.failed(translate(error, where))
        finally:
            await call.hang_up()
        return None

    async def _exchange(self, client: Any, request: Prepared, call: _Call) -> None:
        async with _sent(client, request, call) as response:
            try:
                call.status = response.status_code
                call.headers = _headers(response.headers.raw)
                call.body = await self._body(response, call.headers)
            except BodyError:
                # What is not 2xx is judged by its status: an error page that cannot be read takes nothing away from it.
                if response.is_success:
                    raise

    async def _body(self, response: Any, headers: Mapping[str, str]) -> Body:
        if response.is_stream_consumed:  # by a hook of the caller's client, which has unpacked it too
            data = _whole(response.content, Decoder("", self._max_body))
        else:
            decoder = Decoder(headers.get("content-encoding", ""), self._max_body)
            async with aclosing(response.aiter_raw()) as chunks:
                async for chunk in chunks:
                    decoder.feed(chunk)
            data = decoder.finish()
        return parse(data, headers.get("content-type", ""), self._redact)

    def _client(self) -> Any:
        if self._given is not None:
            return self._given
        if self._own is None:
            self._own = _own_client()
        return self._own


@dataclass(slots=True)
class _Call:
    """How far a call has come: what it may claim when it breaks off."""

    queued: bool = True
    traced: bool = False
    left: bool = False
    stream: Any = None
    status: int | None = None
    headers: Mapping[str, str] = field(default_factory=dict)
    body: Body = EMPTY

    async def trace(self, event: str, info: Mapping[str, Any]) -> None:
        """Told by the connection pool what it is about to do, and what came of it."""
        self.traced = True
        self.left = self.left or event.endswith("send_request_headers.started")
        if event.endswith("connect_tcp.complete"):
            self.stream = info.get("return_value")

    async def hang_up(self) -> None:
        """Close a connection that no request was sent over: the pool forgets it when a TLS handshake is cut."""
        if self.stream is not None and not self.left:
            await self.stream.aclose()

    def failed(self, error: CallError) -> CallError:
        """The error, corrected by what is known of how far the request came."""
        if not error.sent or self.left or not self.traced:
            return error
        kind = ErrorKind.CONNECT if error.kind in {ErrorKind.PROTOCOL, ErrorKind.TIMEOUT} else error.kind
        return replace(error, kind=kind, sent=False)

    def timed_out(self, where: str) -> CallError:
        """The error of a call cut at its bound."""
        if self.queued:
            return CallError(ErrorKind.POOL, f"{IN_FLIGHT} other calls were under way: {where}", sent=False)
        if self.traced and not self.left:
            return CallError(ErrorKind.CONNECT, f"connecting took too long: {where}", sent=False)
        return CallError(ErrorKind.TIMEOUT, f"the call took too long: {where}")


def _library(client: AsyncClient) -> Any:
    """The module that the client is from, told by its name so that neither library has to be there."""
    for base in type(client).__mro__:
        name = base.__module__.partition(".")[0]
        if name in {"httpx", "httpx2"} and base.__name__ == "AsyncClient":
            return sys.modules[name]
    raise SpecError("client", f"must be an httpx or httpx2 AsyncClient, got {type(client).__name__}")


def _own_client() -> Any:
    import httpx

    return httpx.AsyncClient(
        trust_env=False,
        follow_redirects=False,
        # One job's cookies are not another's.
        cookies=CookieJar(DefaultCookiePolicy(allowed_domains=())),
        limits=httpx.Limits(max_connections=IN_FLIGHT, max_keepalive_connections=_IDLE_CONNECTIONS),
    )


def _sent(client: Any, request: Prepared, call: _Call) -> AbstractAsyncContextManager[Any]:
    """The open response to the request."""
    message = _message(client, request, call)
    if request.kind is not CallKind.POLL or client.auth is None:
        return _plainly(client, message)
    return sent_once(client, message, _library(client).Auth())


@asynccontextmanager
async def _plainly(client: Any, message: Any) -> AsyncIterator[Any]:
    response = await client.send(message, stream=True, follow_redirects=False)
    try:
        yield response
    finally:
        await response.aclose()


def _message(client: Any, request: Prepared, call: _Call) -> Any:
    library = _library(client)
    whole = request.timeout / SECOND
    message = client.build_request(
        request.method,
        request.url,
        content=request.content,
        headers=[*request.headers, ("Accept-Encoding", "gzip, identity")],
        timeout=library.Timeout(
            connect=(request.connect_timeout or request.timeout) / SECOND,
            read=(request.read_timeout or request.timeout) / SECOND,
            write=whole,
            pool=whole * _POOL_SHARE,
        ),
        extensions={"trace": call.trace},
    )
    # A client's default params would have replaced the query, and with it a URL's signature.
    message.url = library.URL(request.url)
    return message


def _headers(raw: Iterable[tuple[bytes, bytes]]) -> dict[str, str]:
    """The headers by lower-case name; several of one name are joined by commas."""
    raw = list(raw)
    if sum(len(name) + len(value) for name, value in raw) > MAX_HEADERS:
        raise BodyError(ErrorKind.TOO_LARGE, f"the headers are larger than {MAX_HEADERS} bytes")
    found: dict[str, str] = {}
    for name, value in ((name.decode("latin-1").lower(), value.decode("latin-1")) for name, value in raw):
        if name not in _NOT_KEPT:
            found[name] = f"{found[name]}, {value}" if name in found else value
    return found


def _whole(data: bytes, decoder: Decoder) -> bytes:
    decoder.feed(data)
    return decoder.finish()


def _origin(url: str) -> str:
    parts = urlsplit(url)
    return f"{parts.scheme}://{parts.netloc.rpartition('@')[2]}"
