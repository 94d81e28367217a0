"""`HttpTransport`: one prepared request out, one observation in, over httpx, httpx2 or aiohttp."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from urllib.parse import urlsplit

from tarry.core.observation import CallError, Observation
from tarry.frozen import maker
from tarry.http.body import BodyError
from tarry.http.bound import Bounds
from tarry.http.clients import Client, sender_of
from tarry.http.errors import translate
from tarry.http.exchange import Call, NotSent
from tarry.http.places import Places
from tarry.http.quiet import calling, install
from tarry.ports import Clock, Prepared
from tarry.words import SECOND

_observation = maker(Observation)

MAX_BODY = 1 << 20
"""Bytes of a decoded body."""


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
        call, error = Call(self._max_body, self._redact, self._clock, request.known), None
        bound = self._bounds.of(request.timeout / SECOND)
        token = calling.set(True)
        try:
            with bound:
                if not self._places.take():
                    await self._places.wait()
                    call.started_at = self._clock.now()  # it leaves only now
                try:
                    call.queued = False
                    await self._sender.send(request, call)
                finally:
                    self._places.give_back()
        except Exception as raised:  # noqa: BLE001  # the port promises an observation, whatever a library raises
            if not call.is_told_by_status:
                error = self._judged(raised, request, call, is_over=bound.is_over)
        finally:
            calling.reset(token)
        return _observation(
            kind=request.kind,
            started_at=call.started_at,
            finished_at=self._clock.now(),
            status=call.status,
            headers=self._without_secrets(call.headers),
            body=call.body.value,
            is_json=call.body.is_json,
            digest=call.body.digest,
            text=call.body.text,
            url=request.url.partition("?")[0],
            error=error,
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

    def _judged(self, raised: Exception, request: Prepared, call: Call, *, is_over: bool) -> CallError:
        """What broke the call off, without secrets."""
        where = _origin(request.url)
        if isinstance(raised, BodyError):
            error = raised.as_error()
        elif isinstance(raised, NotSent):
            error = raised.as_error(where)
        elif is_over:
            error = call.timed_out(where, self.in_flight)
        else:
            error = call.failed(translate(raised, where))
        return replace(error, detail=self._redact(error.detail))


def _origin(url: str) -> str:
    try:
        parts = urlsplit(url)
    except ValueError:
        return "a broken URL"
    return f"{parts.scheme}://{parts.netloc.rpartition('@')[2]}"
