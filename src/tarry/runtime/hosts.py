"""Turns at the hosts that are called, so that no host is stormed and none is kept waiting by another.

Whoever wants to call a host lines up for it. A turn is granted at once unless
the host has its bound of calls under way, was called too recently, or asked
for a rest; then those in line get theirs in order. Where the process itself has
all the calls under way that it may have, hosts take turns, so that the jobs of one
that is slow or dead do not delay those of another.
"""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import AsyncIterator, Callable, Mapping
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass, field
from functools import lru_cache
from urllib.parse import urlsplit

from tarry.core.answers import StatusUrl
from tarry.core.batch import Batch
from tarry.core.function import Function
from tarry.core.politeness import Politeness
from tarry.core.request import Request
from tarry.core.templates import TemplateError, authority_roots, blanked, render_url
from tarry.ports import Clock, Transport
from tarry.words import MINUTE, SECOND, Instant, Json, Micros

IN_FLIGHT = 64
"""Calls at once, where the transport does not say how many it does well with."""

LONGEST_REST: Micros = MINUTE
"""How long the other jobs of a host heed what one of them was told (429 or 503 with a hint)."""


@dataclass(eq=False, slots=True)
class Turn:
    """A place in the line for one host; `ring` tells that it was granted."""

    host: str
    ring: Callable[[], None]
    granted: bool = False


@dataclass(eq=False, slots=True)
class _Host:
    line: deque[Turn] = field(default_factory=deque)
    under_way: int = 0
    opens_at: Instant = 0
    timer: asyncio.TimerHandle | None = None


class Hosts:
    """Grants the turns of one process: at most `in_flight` at once."""

    def __init__(self, politeness: Politeness, clock: Clock, in_flight: int = IN_FLIGHT) -> None:
        self._in_flight = in_flight
        self._concurrent = politeness.concurrent
        self._spacing: Micros = 0 if politeness.per_second is None else round(SECOND / politeness.per_second)
        self._clock = clock
        self._hosts: dict[str, _Host] = {}
        # The hosts with a line, the one that was served last at the end.
        self._waiting: dict[str, None] = {}
        self._under_way = 0

    def line_up(self, host: str, ring: Callable[[], None], *, first: bool = False) -> Turn:
        """A turn, granted already or in line (`first`: before the others); pair it with `leave`."""
        turn, place = Turn(host, ring), self._hosts.get(host)
        if place is None:
            place = self._hosts[host] = _Host()
        if not place.line and self._has_room(place) and not (place.opens_at and self._rest_of(place)):
            self._grant(place, turn)
            return turn
        (place.line.appendleft if first else place.line.append)(turn)
        self._waiting.setdefault(host)
        self._serve()
        return turn

    @asynccontextmanager
    async def turn(self, host: str, patience: Micros | None) -> AsyncIterator[None]:
        """A turn, waited for in line; who has little `patience` comes first, and goes ahead when it ends."""
        rung = asyncio.Event()
        turn = self.line_up(host, rung.set, first=patience is not None)
        try:
            if not turn.granted:
                with suppress(TimeoutError):
                    async with asyncio.timeout(None if patience is None else patience / SECOND):
                        await rung.wait()
            self.go_ahead(turn)
            yield
        finally:
            self.leave(turn)

    def go_ahead(self, turn: Turn) -> None:
        """Grant a turn that can wait no longer, past the line."""
        if not turn.granted:
            place = self._hosts[turn.host]
            self._step_out(place, turn)
            self._grant(place, turn)

    def leave(self, turn: Turn) -> None:
        """The call is over, or was not made."""
        place = self._hosts[turn.host]
        if turn.granted:
            place.under_way -= 1
            self._under_way -= 1
        else:
            self._step_out(place, turn)
        if self._waiting:
            self._serve()
        if not (place.line or place.under_way or (place.opens_at and self._rest_of(place))):
            del self._hosts[turn.host]

    def rest(self, host: str, span: Micros) -> None:
        """The host asked for less traffic: no further turn for this long, or for a minute if that is less."""
        place = self._hosts.setdefault(host, _Host())
        place.opens_at = max(place.opens_at, self._clock.now() + min(span, LONGEST_REST))

    def _has_room(self, place: _Host) -> bool:
        return place.under_way < self._concurrent and self._under_way < self._in_flight

    def _rest_of(self, place: _Host) -> Micros:
        return max(place.opens_at - self._clock.now(), 0)

    def _grant(self, place: _Host, turn: Turn) -> None:
        turn.granted = True
        place.under_way += 1
        self._under_way += 1
        if self._spacing:
            place.opens_at = max(place.opens_at, self._clock.now() + self._spacing)

    def _step_out(self, place: _Host, turn: Turn) -> None:
        place.line.remove(turn)
        if not place.line:
            del self._waiting[turn.host]

    def _serve(self) -> None:
        """Grant what can be granted, a turn at a time, to the host that has waited longest."""
        served = True
        while served and self._under_way < self._in_flight:
            served = any(map(self._serve_one, list(self._waiting)))

    def _serve_one(self, host: str) -> bool:
        place = self._hosts[host]
        rest = place.opens_at and self._rest_of(place)
        if rest or not self._has_room(place):
            if rest and place.timer is None:
                place.timer = asyncio.get_running_loop().call_later(rest / SECOND, self._open, host, place)
            return False
        turn = place.line[0]
        self._step_out(place, turn)
        self._grant(place, turn)
        if place.line:
            del self._waiting[host]
            self._waiting[host] = None
        turn.ring()
        return True

    def _open(self, host: str, place: _Host) -> None:
        place.timer = None
        if host in self._waiting:
            self._serve()


def in_flight_of(transport: Transport) -> int:
    """How many calls at once a transport does well with."""
    return getattr(transport, "in_flight", IN_FLIGHT)


def host_of(target: Request | Function | Batch, values: Mapping[str, Json], status_url: StatusUrl | None = None) -> str:
    """The host and port that a call goes to, a callable counting as a host of its own.

    A status URL that was moved stands in for the target's own. A URL that names none goes to
    where the submit went; one that cannot be told goes to "".
    """
    if isinstance(target, Function):
        return target.function
    if status_url is not None:
        return _host(status_url.url)
    request = target.request if isinstance(target, Batch) else target
    if not authority_roots(request.url):
        return _host(blanked(request.url))
    try:
        url = render_url(request.url.partition("?")[0], values)
    except TemplateError:
        return ""
    submit = values.get("submit")
    return _host(url) or (_host(str(submit.get("url"))) if isinstance(submit, dict) else "")


@lru_cache(4_096)
def _host(url: str) -> str:
    try:
        return urlsplit(url).netloc.rpartition("@")[2].lower()
    except ValueError:
        return ""
