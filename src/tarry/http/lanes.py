"""Our own connections over httpx or httpx2: one each lane, and lanes are found by origin.

The pools of these libraries look at every connection for every call, so that a hundred idle ones, or a hundred
calls under way, cost more than the calls. Here a pool has one connection, and finding it is a look into a dict.
"""

from __future__ import annotations

import ssl
from collections.abc import Callable
from contextlib import aclosing
from functools import lru_cache
from importlib import import_module
from typing import Any

from tarry.http.exchange import Answer, Call, Reader
from tarry.http.given import Progress, timeouts
from tarry.http.idle import KEPT, idle_bound
from tarry.ports import Clock, Prepared
from tarry.words import SECOND, Instant

IN_FLIGHT = 64
"""Calls at once."""

_TRUSTS_NOBODY = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
"""For lanes without TLS: they ask for a context, too, and are quick to be opened with this one."""


class Lanes:
    """Sends over connections of our own: no proxy from the environment, no cookies, no redirects, no auth."""

    def __init__(self, library: str, clock: Clock) -> None:
        self._library = import_module(library)
        self._url: Callable[[str], Any] = lru_cache(1_024)(self._library.URL)
        self._agent = ("User-Agent", f"python-{library}/{self._library.__version__}")
        self._tls: ssl.SSLContext | None = None
        self._clock = clock
        self._most_idle = idle_bound()
        self._lanes: dict[tuple[str, str, int | None], list[Any]] = {}
        # Who came back first stands first, with the origin that it leads to and the time.
        self._idle: dict[Any, tuple[tuple[str, str, int | None], Instant]] = {}

    @property
    def in_flight(self) -> int:
        return IN_FLIGHT

    async def send(self, request: Prepared, call: Call, read: Reader) -> None:
        progress = Progress(call)
        url = self._url(request.url)
        origin = (url.scheme, url.host, url.port)
        lane = self._take(origin)
        try:
            response = await lane.handle_async_request(self._message(request, url, progress))
            async with aclosing(response), aclosing(aiter(response.stream)) as chunks:
                await read(Answer(response.status_code, response.headers.raw, chunks))
        except BaseException:
            await progress.hang_up()
            await lane.aclose()
            raise
        await self._give_back(origin, lane)

    async def aclose(self) -> None:
        idle, self._idle, self._lanes = self._idle, {}, {}
        for lane in idle:
            await lane.aclose()

    def _message(self, request: Prepared, url: Any, progress: Progress) -> Any:
        return self._library.Request(
            request.method,
            url,
            content=request.content,
            headers=[*request.headers, self._agent, ("Accept-Encoding", "gzip, identity")],
            extensions={"trace": progress.trace, "timeout": timeouts(request)},
        )

    def _take(self, origin: tuple[str, str, int | None]) -> Any:
        """The lane to there that was used last, as it is the surest to be still open; else a new one."""
        lanes = self._lanes.get(origin)
        if not lanes:
            return self._opened(is_secure=origin[0] == "https")
        lane = lanes.pop()
        if not lanes:
            del self._lanes[origin]
        del self._idle[lane]
        return lane

    async def _give_back(self, origin: tuple[str, str, int | None], lane: Any) -> None:
        now = self._clock.now()
        await self._close_old(now)
        if len(self._idle) >= self._most_idle:
            # Not in place of another: where hosts are called in turn, that would keep none for long enough.
            await lane.aclose()
            return
        self._lanes.setdefault(origin, []).append(lane)
        self._idle[lane] = origin, now

    async def _close_old(self, now: Instant) -> None:
        while self._idle:
            lane, (origin, since) = next(iter(self._idle.items()))
            if now - since < KEPT:
                return
            del self._idle[lane]
            self._lanes[origin].remove(lane)
            if not self._lanes[origin]:
                del self._lanes[origin]
            await lane.aclose()

    def _opened(self, *, is_secure: bool) -> Any:
        return self._library.AsyncHTTPTransport(
            verify=self._trusting() if is_secure else _TRUSTS_NOBODY,
            trust_env=False,
            limits=self._library.Limits(max_connections=1, max_keepalive_connections=1, keepalive_expiry=KEPT / SECOND),
        )

    def _trusting(self) -> ssl.SSLContext:
        """One for all lanes, and only when it is needed: reading the certificates takes a while."""
        tls = self._tls
        if tls is None:
            tls = self._tls = self._library.create_ssl_context(trust_env=False)
        return tls
