"""Gathers the polls of jobs that share a `Batch`, and makes one call of them."""

from __future__ import annotations

import asyncio
from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol

from tarry.core.batch import Batch, Id
from tarry.core.observation import CallError, Observation
from tarry.ports import Clock
from tarry.runtime.begin import begin
from tarry.runtime.hosts import Hosts, host_of
from tarry.words import SECOND, CallKind, ErrorKind, Micros, micros

_SHARE_OF_TIME = 4
"""A poll spends at most a fourth of its time on waiting for others."""


class Send(Protocol):
    """Makes one call of a batch."""

    async def __call__(self, batch: Batch, ids: Sequence[Id], bound: Micros, *, refresh: bool) -> Observation:
        """Ask for these ids, within this time; `refresh`: with credentials that are fetched afresh."""
        ...


@dataclass(frozen=True, slots=True, kw_only=True)
class Member:
    """One job's part in a call.

    `timeout` bounds its wait for the answer, the window and the line for the host included; `is_cut` says
    that its deadline made it short, `refresh` that its last poll was denied.
    """

    id: Id
    timeout: Micros
    is_cut: bool = False
    refresh: bool = False

    @property
    def patience(self) -> Micros:
        """How long it may wait for others, and in line where its deadline is near."""
        return self.timeout // _SHARE_OF_TIME


class Batches:
    """Polls that come within a window, or while the host has no turn for them, share a call.

    `send` makes it; `hosts` grants it one turn. Each member has its permit already, and waits no longer than
    its own time allows: one that leaves takes nothing from the others, and the last one to leave ends the call.
    """

    def __init__(self, send: Send, hosts: Hosts, clock: Clock) -> None:
        self._send = send
        self._hosts = hosts
        self._clock = clock
        self._open: dict[str, _Round] = {}

    async def poll(self, batch: Batch, member: Member) -> Observation:
        """What this member sees of the answer."""
        began = self._clock.now()
        shared = self._open.get(batch.group)
        if shared is None or shared.is_closed:
            shared = self._open[batch.group] = _Round(batch, self._send, self._hosts)
        seat = shared.join(member)
        try:
            async with asyncio.timeout(member.timeout / SECOND):
                return await seat
        except TimeoutError:
            return Observation(CallKind.POLL, began, self._clock.now(), error=shared.late())
        finally:
            shared.leave(member, seat)
            if shared.is_over and self._open.get(batch.group) is shared:
                del self._open[batch.group]


class _Round:
    """One call, from its first member to its answer."""

    def __init__(self, batch: Batch, send: Send, hosts: Hosts) -> None:
        self._batch = batch
        self._send = send
        self._hosts = hosts
        self._members: dict[str, Member] = {}
        self._seats: defaultdict[str, list[asyncio.Future[Observation]]] = defaultdict(list)
        self._timers: list[asyncio.TimerHandle] = []
        self._call: asyncio.Task[None] | None = None
        self._is_sent = False

    @property
    def is_closed(self) -> bool:
        """Whether nobody can join any more."""
        return self._is_sent or len(self._members) >= self._batch.chunk

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
        window = min(micros(self._batch.window), member.patience)
        self._timers.append(loop.call_later(window / SECOND, self._begin))
        if self.is_closed:
            self._begin()
        return seat

    def leave(self, member: Member, seat: asyncio.Future[Observation]) -> None:
        """The seat is given up, with an answer or without."""
        seats = self._seats[str(member.id)]
        seats.remove(seat)
        if not seats:
            del self._seats[str(member.id)]
            if not self._is_sent:
                del self._members[str(member.id)]
        if self.is_over:
            self._end()

    def late(self) -> CallError:
        """Why a member whose time is over has no answer."""
        if self._is_sent:
            return CallError(ErrorKind.TIMEOUT, "the batched call took too long")
        return CallError(ErrorKind.POOL, "the host had no turn for the batched call", sent=False)

    def _begin(self) -> None:
        if self._call is None:
            self._call = begin(self._made(), name="tarry batch")

    def _end(self) -> None:
        for timer in self._timers:
            timer.cancel()
        if self._call is not None:
            self._call.cancel()

    async def _made(self) -> None:
        cut = [member.patience for member in self._members.values() if member.is_cut]
        async with self._hosts.turn(host_of(self._batch, {}), min(cut, default=None)):
            self._is_sent = True
            members = list(self._members.values())
            ids = [member.id for member in members]
            try:
                bound, refresh = max(member.timeout for member in members), any(member.refresh for member in members)
                seen = await self._send(self._batch, ids, bound, refresh=refresh)
                shares = self._batch.shares(seen, ids)
            except Exception as error:  # noqa: BLE001  # whatever went wrong, each member hears of it and none hangs
                for _, seat in self._waiting():
                    seat.set_exception(error)
                return
        for name, seat in self._waiting():
            seat.set_result(shares[name])

    def _waiting(self) -> list[tuple[str, asyncio.Future[Observation]]]:
        return [(name, seat) for name, seats in self._seats.items() for seat in seats if not seat.done()]
