"""Gathers the polls of jobs that share a `Batch`, and makes one call of them."""

from __future__ import annotations

import asyncio
from collections import defaultdict
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass

from tarry.core.batch import Batch, Id
from tarry.core.observation import CallError, Observation
from tarry.ports import Clock
from tarry.words import SECOND, CallKind, ErrorKind, Micros, micros

_SHARE_OF_TIME = 4
"""A poll spends at most a fourth of its time on waiting for others."""

Send = Callable[[Batch, Sequence[Id], Micros], Awaitable[Observation]]


@dataclass(frozen=True, slots=True)
class Member:
    """One job's part in a call; `timeout` bounds its wait for the answer, the window included."""

    id: Id
    timeout: Micros


class Batches:
    """Polls that come within a window, or until the chunk is full, share a call.

    `send` makes it. Each member has its permit already, and each waits no longer than its own time
    allows: one that leaves takes nothing from the others, and the last one to leave ends the call.
    """

    def __init__(self, send: Send, clock: Clock) -> None:
        self._send = send
        self._clock = clock
        self._open: dict[str, _Round] = {}

    async def poll(self, batch: Batch, member: Member) -> Observation:
        """What this member sees of the answer."""
        began = self._clock.now()
        shared = self._open.get(batch.group)
        if shared is None or shared.has_begun:
            shared = self._open[batch.group] = _Round(batch, self._send)
        seat = shared.join(member)
        try:
            async with asyncio.timeout(member.timeout / SECOND):
                return await seat
        except TimeoutError:
            error = CallError(ErrorKind.TIMEOUT, "the batched call took too long", sent=shared.has_begun)
            return Observation(CallKind.POLL, began, self._clock.now(), error=error)
        finally:
            shared.leave(member, seat)
            if shared.is_over and self._open.get(batch.group) is shared:
                del self._open[batch.group]


class _Round:
    """One call, from its first member to its answer."""

    def __init__(self, batch: Batch, send: Send) -> None:
        self._batch = batch
        self._send = send
        self._seats: defaultdict[str, list[asyncio.Future[Observation]]] = defaultdict(list)
        self._members: dict[str, Member] = {}
        self._call: asyncio.Task[None] | None = None
        self._timers: list[asyncio.TimerHandle] = []

    @property
    def has_begun(self) -> bool:
        """Whether nobody can join any more."""
        return self._call is not None

    @property
    def is_over(self) -> bool:
        """Whether nobody waits any more."""
        return not self._seats

    def join(self, member: Member) -> asyncio.Future[Observation]:
        """Take part; the call begins when the window of the most hurried member closes, or at once when it is full."""
        loop = asyncio.get_running_loop()
        seat: asyncio.Future[Observation] = loop.create_future()
        self._seats[str(member.id)].append(seat)
        known = self._members.get(str(member.id), member)
        self._members[str(member.id)] = max(known, member, key=lambda each: each.timeout)
        window = min(micros(self._batch.window), member.timeout // _SHARE_OF_TIME)
        self._timers.append(loop.call_later(window / SECOND, self._begin))
        if len(self._members) == self._batch.chunk:
            self._begin()
        return seat

    def leave(self, member: Member, seat: asyncio.Future[Observation]) -> None:
        """The seat is given up, with an answer or without."""
        seats = self._seats[str(member.id)]
        seats.remove(seat)
        if not seats:
            del self._seats[str(member.id)]
            if not self.has_begun:
                del self._members[str(member.id)]
        if self.is_over:
            self._end()

    def _begin(self) -> None:
        if self._call is None and self._seats:
            self._call = asyncio.get_running_loop().create_task(self._made(), name="tarry batch")

    def _end(self) -> None:
        for timer in self._timers:
            timer.cancel()
        if self._call is not None:
            self._call.cancel()

    async def _made(self) -> None:
        members = list(self._members.values())
        ids = [member.id for member in members]
        try:
            seen = await self._send(self._batch, ids, max(member.timeout for member in members))
            shares = self._batch.shares(seen, ids)
        except Exception as error:  # noqa: BLE001  # whatever went wrong, each member hears of it and none hangs
            for _, seat in self._waiting():
                seat.set_exception(error)
            return
        for name, seat in self._waiting():
            seat.set_result(shares[name])

    def _waiting(self) -> list[tuple[str, asyncio.Future[Observation]]]:
        return [(name, seat) for name, seats in self._seats.items() for seat in seats if not seat.done()]
