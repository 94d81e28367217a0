"""`HttpTransport`: one prepared request out, one observation in, over httpx, httpx2 or aiohttp."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable, Iterable, Mapping
from dataclasses import replace
from functools import lru_cache
from urllib.parse import urlsplit

from tarry.core.observation import CallError, Observation
from tarry.http.body import EMPTY, BodyError, Decoder, parse, unpacked
from tarry.http.bound import Bounds
from tarry.http.clients import Client, sender_of
from tarry.http.errors import translate
from tarry.http.exchange import Answer, Call, NotSent
from tarry.http.places import Places
from tarry.http.quiet import calling, install
from tarry.ports import Clock, Prepared
from tarry.words import SECOND, ErrorKind

MAX_BODY = 1 << 20
"""Bytes of a decoded body."""

MAX_HEADERS = 64 << 10
"""Bytes of the headers of an answer."""

_SHORT = 50  # characters of a header's name that is worth to be remembered
_NOT_KEPT = frozenset({"set-cookie", "set-cookie2"})


class HttpTransport:
    """Sends each request once and answers with an observation, whatever happens.

    `client` is an `httpx.AsyncClient`, an `httpx2.AsyncClient` or an `aiohttp.ClientSession` of yours: its
    default headers, auth and proxies are used, towards every host that a spec
    names or allows; it is never closed here. Or the name of a library, "httpx" (the default), "httpx2" or "aiohttp",
    which is then used with no proxy
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
        client: Client | None = None,
        *,
        clock: Clock,
        max_body: int = MAX_BODY,
        redact: Callable[[str], str] = str,
    ) -> None:
        self._sender = sender_of(client, clock)
        install()
        self._clock = clock
        self._max_body = max_body
        self._redact = redact
        self._bounds = Bounds()
        self._places = Places(self._sender.in_flight)

    @property
    def in_flight(self) -> int:
        """Calls at once; more wait here, where waiting is told apart from a slow service."""
        return self._sender.in_flight

    async def send(self, request: Prepared) -> Observation:
        """Send once. A failure is an observation with an error; only cancellation is raised."""
        started = self._clock.now()
        found = _Found(self._max_body, self._redact)
        token = calling.set(True)
        try:
            error = await self._bounded(request, found)
        finally:
            calling.reset(token)
        return Observation(
            kind=request.kind,
            started_at=started,
            finished_at=self._clock.now(),
            status=found.status,
            headers=self._without_secrets(found.headers),
            body=found.body.value,
            is_json=found.body.is_json,
            digest=found.body.digest,
            text=found.body.text,
            url=request.url.partition("?")[0],
            error=error and replace(error, detail=self._redact(error.detail)),
        )

    async def aclose(self) -> None:
        """Close the connections of our own; a client of the caller's stays open."""
        token = calling.set(True)
        try:
            await self._sender.aclose()
        finally:
            calling.reset(token)

    def _without_secrets(self, headers: Mapping[str, str]) -> Mapping[str, str]:
        return {name: self._redact(value) for name, value in headers.items()} if bool(self._redact) else headers

    async def _bounded(self, request: Prepared, found: _Found) -> CallError | None:
        bound, call = self._bounds.of(request.timeout / SECOND), Call()
        try:
            with bound:
                if not self._places.take():
                    await self._places.wait()
                try:
                    call.queued = False
                    await self._sender.send(request, call, found.read)
                finally:
                    self._places.give_back()
        except BodyError as error:
            return error.as_error()
        except Exception as error:  # noqa: BLE001  # the port promises an observation, whatever a library raises
            where = _origin(request.url)
            if isinstance(error, NotSent):
                return error.as_error(where)
            if bound.is_over:
                return call.timed_out(where, self.in_flight)
            return call.failed(translate(error, where))
        return None


class _Found:
    """What an answer brought, as far as it came."""

    __slots__ = ("_max_body", "_redact", "body", "headers", "status")

    def __init__(self, max_body: int, redact: Callable[[str], str]) -> None:
        self._max_body = max_body
        self._redact = redact
        self.status: int | None = None
        self.headers: Mapping[str, str] = {}
        self.body = EMPTY

    async def read(self, answer: Answer) -> None:
        """Take the answer in; `BodyError` where it is out of bounds."""
        try:
            self.status = answer.status
            self.headers = _headers(answer.headers)
            coding = "" if answer.is_unpacked else self.headers.get("content-encoding", "")
            if isinstance(answer.body, bytes):
                raw = unpacked(answer.body, coding, self._max_body)
            else:
                raw = await self._collected(answer.body, coding)
            self.body = parse(raw, self.headers.get("content-type", ""), self._redact)
        except BodyError:
            # What is not 2xx is judged by its status: an error page that cannot be read takes nothing away from it.
            if 200 <= answer.status < 300:
                raise

    async def _collected(self, body: AsyncIterator[bytes], coding: str) -> bytes:
        decoder = Decoder(coding, self._max_body)
        async for chunk in body:
            decoder.feed(chunk)
        return decoder.finish()


def _headers(raw: Iterable[tuple[bytes, bytes]]) -> dict[str, str]:
    """The headers by lower-case name; several of one name are joined by commas."""
    found: dict[str, str] = {}
    size = 0
    for name_, value_ in raw:
        size += len(name_) + len(value_)
        name, value = _name(name_) if len(name_) <= _SHORT else _read_name(name_), value_.decode("latin-1")
        if name not in _NOT_KEPT:
            found[name] = f"{found[name]}, {value}" if name in found else value
    if size > MAX_HEADERS:
        raise BodyError(ErrorKind.TOO_LARGE, f"the headers are larger than {MAX_HEADERS} bytes")
    return found


def _read_name(name: bytes) -> str:
    return name.decode("latin-1").lower()


_name = lru_cache(512)(_read_name)  # services say the same names again and again


def _origin(url: str) -> str:
    try:
        parts = urlsplit(url)
    except ValueError:
        return "a broken URL"
    return f"{parts.scheme}://{parts.netloc.rpartition('@')[2]}"
