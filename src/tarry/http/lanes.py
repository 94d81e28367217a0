"""Our own connections over what is below httpx or httpx2: one each lane, and lanes are found by origin.

The pools of these libraries look at every connection for every call, so that a hundred idle ones, or a hundred
calls under way, cost more than the calls. Here finding one is a look into a dict, and a request is sent as it was
prepared, without the models of a client in between.
"""

from __future__ import annotations

import ssl
from collections.abc import Callable
from contextlib import aclosing
from dataclasses import dataclass
from functools import lru_cache
from importlib import import_module
from typing import Any, TypeAlias

from tarry.core.origin import OriginError, origin_of
from tarry.http.exchange import ENCODING, Call, NotSent
from tarry.http.given import Progress, timeouts
from tarry.http.idle import KEPT, idle_bound
from tarry.ports import Clock, Prepared
from tarry.words import SECOND, ErrorKind, Instant

IN_FLIGHT = 64
"""Calls at once."""

_WITH_BODY = frozenset({"POST", "PUT", "PATCH"})
_Origin: TypeAlias = tuple[bytes, bytes, int | None]


@dataclass(frozen=True, slots=True)
class _Target:
    """Where a call goes: the URL as the library below has it, its origin, and the header that names the host."""

    url: Any
    origin: _Origin
    host: tuple[str, str]


class Lanes:
    """Sends over connections of our own: no proxy from the environment, no cookies, no redirects, no auth."""

    def __init__(self, library: str, clock: Clock) -> None:
        self._library = import_module(library)
        self._below = import_module(library.replace("httpx", "httpcore"))  # httpcore2 is below httpx2
        self._target: Callable[[str], _Target] = lru_cache(1_024)(self._read)
        self._agent = ("User-Agent", f"python-{library}/{self._library.__version__}")
        self._network = self._below.AnyIOBackend()
        self._tls: ssl.SSLContext | None = None
        self._clock = clock
        self._most_idle = idle_bound()
        self._lanes: dict[_Origin, list[Any]] = {}
        # Who came back first stands first, with the origin that it leads to and the time.
        self._idle: dict[Any, tuple[_Origin, Instant]] = {}

    @property
    def in_flight(self) -> int:
        return IN_FLIGHT

    async def send(self, request: Prepared, call: Call) -> None:
        target = self._target(request.url)
        lane = await self._take(target.origin)
        progress = None
        if lane is None:
            lane, progress = self._opened(target.url.origin), Progress(call)
        else:
            call.left = True  # it is connected: what it is given leaves at once
        try:
            response = await lane.handle_async_request(self._message(request, target, progress))
            async with aclosing(response), aclosing(aiter(response.stream)) as chunks:
                await call.read(response.status, response.headers, chunks)
        except BaseException:
            if progress is not None:
                await progress.hang_up()
            await lane.aclose()
            raise
        await self._give_back(target.origin, lane)

    async def aclose(self) -> None:
        idle, self._idle, self._lanes = self._idle, {}, {}
        for lane in idle:
            await lane.aclose()

    def _read(self, text: str) -> _Target:
        try:
            origin_of(text)
        except OriginError as refused:
            raise NotSent(ErrorKind.REFUSED, str(refused)) from None
        url = self._library.URL(text)
        below = self._below.URL(scheme=url.raw_scheme, host=url.raw_host, port=url.port, target=url.raw_path)
        return _Target(below, (url.raw_scheme, url.raw_host, url.port), ("Host", url.netloc.decode("ascii")))

    def _message(self, request: Prepared, target: _Target, progress: Progress | None) -> Any:
        headers = [target.host, *request.headers, ENCODING]
        if not any(name.lower() == "user-agent" for name, _ in request.headers):
            headers.append(self._agent)
        if request.content or request.method in _WITH_BODY:
            headers.append(("Content-Length", str(len(request.content or b""))))
        extensions: dict[str, Any] = {"timeout": timeouts(request)}
        if progress is not None:
            extensions["trace"] = progress.trace
        return self._below.Request(
            request.method, target.url, headers=headers, content=request.content, extensions=extensions
        )

    async def _take(self, origin: _Origin) -> Any:
        """The lane to there that was used last, as it is the surest to be still open; None where none is."""
        while lanes := self._lanes.get(origin):
            lane = lanes.pop()
            if not lanes:
                del self._lanes[origin]
            del self._idle[lane]
            if not lane.has_expired():
                return lane
            await lane.aclose()
        return None

    async def _give_back(self, origin: _Origin, lane: Any) -> None:
        now = self._clock.now()
        await self._close_old(now)
        if not lane.is_idle() or _says_more(lane) or len(self._idle) >= self._most_idle:
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

    def _opened(self, origin: Any) -> Any:
        return self._below.AsyncHTTPConnection(
            origin,
            ssl_context=self._trusting() if origin.scheme == b"https" else None,
            keepalive_expiry=KEPT / SECOND,
            network_backend=self._network,
        )

    def _trusting(self) -> ssl.SSLContext:
        """One for all lanes, and only when it is needed: reading the certificates takes a while."""
        tls = self._tls
        if tls is None:
            tls = self._tls = self._library.create_ssl_context(trust_env=False)
        return tls


def _says_more(lane: Any) -> bool:
    """Whether more came than the answer: it would be taken for the beginning of the next one."""
    state = getattr(getattr(lane, "_connection", None), "_h11_state", None)  # nothing else tells of it
    return state is not None and bool(state.trailing_data[0])
