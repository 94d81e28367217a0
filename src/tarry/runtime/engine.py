"""Follows the jobs that callers wait for: claims them, drives them, or watches others do so."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable, Iterator, Sequence
from contextvars import copy_context
from functools import partial
from typing import Any, TypeAlias, TypeVar

from tarry.core.spec import JobSpec
from tarry.errors import JobNotFound, LeaseLost, ResultUnavailable, TarryError
from tarry.ports import JobRow
from tarry.runtime.agenda import Agenda
from tarry.runtime.begin import begin
from tarry.runtime.claims import Claims
from tarry.runtime.clock_watch import ClockWatch
from tarry.runtime.drive import Drive, Parked, Parts
from tarry.runtime.fetching import Fetching
from tarry.runtime.followed import Followed
from tarry.runtime.hearing import Hearing
from tarry.runtime.hold import CLAIM_AHEAD, Hold
from tarry.runtime.outbox import Outbox
from tarry.runtime.pulse import LOOK_EVERY, Pulse
from tarry.words import SECOND, Instant

T = TypeVar("T")

_First: TypeAlias = Callable[[Followed], Awaitable[Parked | None] | None]

log = logging.getLogger("tarry.runtime")

_GRACE = 5.0
_CHUNK = 500


class Engine:
    """The runtime of one process: one loop a job waited for, one round twice a second for all."""

    def __init__(self, parts: Parts) -> None:
        self._store = parts.store
        self._units = parts.units
        self._clock = parts.clock
        self._worker = parts.worker
        self._writer = parts.writer
        self._fetching = Fetching(parts)
        self.outbox = Outbox(parts, self._fetching)
        self.pulse = Pulse()
        self._drive = Drive(parts, self.outbox.look, self.pulse)
        self._going_on = self._go_on  # one for all jobs that are parked
        self._claims = Claims(parts)
        self._agenda = Agenda(parts.clock)
        self._jobs: dict[int, Followed] = {}
        self._loops: dict[int, asyncio.Task[None]] = {}
        self._rounds: asyncio.Task[None] | None = None
        self._starting = asyncio.Lock()
        self._version: int | None = None
        self._closing = False
        self.refused = 0
        self.upheavals = 0
        """How often many jobs may have become overdue at once: a worker died, or the clock jumped."""
        self._hurry = asyncio.Event()
        self._hearing = Hearing(parts.store, parts.clock, self._look)
        parts.writer.on_taken = self._expect

    def follow(self, row: JobRow, spec: JobSpec | None) -> Followed:
        """Join those who wait for this job, or be the first; pair it with `leave`."""
        if self._closing:
            raise TarryError("the poller is closed")
        job = self._jobs.get(row.id)
        if job is None:
            job = self._jobs[row.id] = Followed(row, self._clock, self._agenda)
            self._begin(job)
        job.bring(spec)
        if not job.waiters:
            job.surroundings = copy_context()
            job.rouse()
        job.waiters += 1
        return job

    def leave(self, job: Followed) -> None:
        """Stop waiting; the last one to leave gives the job back as it is."""
        job.waiters = max(job.waiters - 1, 0)
        if not job.waiters:
            job.rouse()

    async def ready(self) -> None:
        """Be a worker: registered, and renewed and looked after from now on; not any more once `close` was called."""
        async with self._starting:
            if self._rounds is None and not self._closing:
                await self._worker.keep()
                self.upheavals += await self._worker.bury()
                if self.is_closing:
                    await self._worker.retire()
                else:
                    self.pulse.at = self._clock.now()
                    self._rounds = begin(self._round_forever(), name="tarry rounds")
                    self._hearing.begin()

    async def deliver(self) -> None:
        """Begin what is owed and can be done here."""
        await self.ready()
        if not self._closing:
            self.outbox.look()

    @property
    def hand(self) -> int | None:
        """The worker that takes a job as it is made; None while there is none."""
        return self._worker.id if not self._closing and self._worker.may_send(self._clock.now()) else None

    @property
    def is_closing(self) -> bool:
        """Whether `close` was called."""
        return self._closing

    @property
    def held(self) -> int:
        """How many jobs are in the hands of this process."""
        return sum(job.held_by is not None for job in self._jobs.values())

    @property
    def in_flight(self) -> int:
        """How many calls for jobs are under way, from before they leave until what they saw is committed."""
        return self._drive.gate.inside

    def may_take(self, job: int) -> bool:
        """Whether no loop looks after this job here yet, and a new one may begin."""
        return not self._closing and job not in self._jobs

    def take(self, row: JobRow, start: Instant | None = None) -> Followed:
        """Drive a job that was just claimed, from `start` on, for as long as it is held; pair it with `give_back`."""
        job = self._jobs[row.id] = Followed(row, self._clock, self._agenda)
        job.waiters, job.held_by, job.is_taken = 1, row.owner, True
        first = partial(self._drive_taken, row=row, start=start)
        self._begin(job, first)
        return job

    def _expect(self, row: JobRow) -> None:
        """Somebody made this job to wait for it, and it is held already."""
        if self.may_take(row.id):
            job = self._jobs[row.id] = Followed(row, self._clock, self._agenda)
            job.held_by = row.owner
            first = partial(self._drive_expected, row=row)
            # Its loop begins in the surroundings of who comes; these are those of whoever asked the store for many.
            job.park(self._clock.now() + SECOND, partial(self._begin, first=first))

    def give_back(self, job: Followed) -> None:
        """Stop driving a job that was taken, unless somebody waits for it; again is fine."""
        if job.is_taken:
            job.is_taken = False
            self.leave(job)

    def rouse(self, job: int) -> None:
        """Look at this job now, if it is followed here."""
        if job in self._jobs:
            self._jobs[job].rouse()

    async def close(self) -> None:
        """Give everything back: calls in flight get 5 s, their permits count if they are cut."""
        self._closing = True
        for job in self._jobs.values():
            job.waiters = 0
            job.rouse()
        loops = list(self._loops.values())
        hurried = asyncio.ensure_future(self._hurry.wait())
        drained = asyncio.ensure_future(self._drained(loops))
        await asyncio.wait({hurried, drained}, timeout=_GRACE, return_when=asyncio.FIRST_COMPLETED)
        await _ended([hurried, drained])
        ending = [*loops, *self.outbox.cut(), *self._hearing.end(), *([self._rounds] if self._rounds else [])]
        for each in ending:
            each.cancel()
        await _ended([*ending, *self._writer.end()])
        self._agenda.end()
        await self._worker.retire()

    async def _drained(self, loops: Sequence[asyncio.Future[Any]]) -> None:
        """Until the jobs are let go of, and what they owe is delivered."""
        if loops:
            await asyncio.wait(loops)
        await self.outbox.settled()

    def hurry(self) -> None:
        """End the grace of `close` now."""
        self._hurry.set()

    def _begin(self, job: Followed, first: _First | None = None) -> None:
        loop = self._loop(job, first)
        self._loops[job.id] = begin(loop, name=f"tarry {job.key}", surroundings=job.surroundings)

    async def _loop(self, job: Followed, first: _First | None = None) -> None:
        """Until the job is over or nobody waits; `first` drives one that is held from the beginning."""
        try:
            if self._rounds is None:
                await self.ready()
            driving = None if first is None else first(job)
            while True:
                if driving is not None:
                    await self._driven(job, driving)
                if job.parked is not None or not job.waiters or job.over.done():
                    break
                driving = await self._driving(job)
        except Exception as error:  # noqa: BLE001  # one job's trouble is told to its waiters and to nobody else
            job.fail(error)
        finally:
            del self._loops[job.id]
            if job.parked is None:
                job.fail(TarryError(f"the poller was closed; job {job.key!r} lives on"))
                del self._jobs[job.id]
                self._agenda.leave(job)

    def _go_on(self, job: Followed) -> None:
        """The wait of a parked job is over, or it was roused."""
        self._begin(job, self._drive_on)

    def _drive_on(self, job: Followed) -> Awaitable[Parked | None] | None:
        hold, job.parked = job.parked, None
        return None if hold is None else self._drive.run(job, hold, was_held=True)

    def _drive_expected(self, job: Followed, row: JobRow) -> Awaitable[Parked | None]:
        """Drive a job that somebody waits for by now; it is given back where whoever made it left before that."""
        job.heed()  # who came has roused it, and asks for nothing else
        return self._drive.run(job, Hold.of(row, job.spec_of(row.spec)))

    async def _drive_taken(self, job: Followed, row: JobRow, start: Instant | None) -> None:
        """Drive a job that nobody may wait for: what goes wrong is told to the log and to those who wait later."""
        try:
            hold = Hold.of(row, job.spec_of(row.spec)).staggered(start, self._clock.now())
            await self._driven(job, self._drive.run(job, hold))
            if hold.spec.fetch is not None:
                await self._fetch_taken(job)
        except ResultUnavailable as missing:
            log.warning("%s", missing)
        except Exception:
            log.exception("job %r cannot be driven here", job.key)
            job.broke = True
            found = await self._writer.row(job.id)
            if found is not None and found.owner == row.owner:
                await self._claims.write_off(found, self._clock.now())
        finally:
            self.give_back(job)
            job.driven.set()

    async def _fetch_taken(self, job: Followed) -> None:
        """The result of a job that ended while it was driven here, once."""
        row = await self._writer.row(job.id)
        if row is not None and row.outcome is not None:
            await self._fetching.run(job, row)

    async def _driving(self, job: Followed) -> Awaitable[Parked | None] | None:
        """Look once: the drive of the job as it was claimed; None after a rest, if it cannot be held now, and once it is over.

        Who awaits it keeps nothing of how the job was then, for as long as it may wait.
        """
        hold = await self._claims.unread(job) if job.is_ripe else None
        if hold is not None:
            return self._drive.run(job, hold)
        row = await self._writer.row(job.id)
        if row is None:
            raise JobNotFound(f"job {job.key!r} is gone from the store")
        if row.outcome is not None:
            await self._fetching.run(job, row)
            return None
        wanted_at = job.wanted(self._claims.wanted_at(job, row), row)
        hold = await self._claims.held(job, row, wanted_at)
        if hold is not None:
            return self._drive.run(job, hold)
        job.looked.set()
        # A job that another holds, or that is paused, rouses its loop when it moves on.
        at_once, is_idle = self._clock.now() + LOOK_EVERY, row.owner is not None or row.paused
        is_roused = await job.rest(None if is_idle else max(wanted_at - CLAIM_AHEAD, at_once))
        job.is_ripe = not is_roused and job.runs_here(job.spec_of(row.spec))
        return None

    async def _driven(self, job: Followed, driving: Awaitable[Parked | None]) -> None:
        """Drive it until it is not held any more, or has to wait for long: then it is parked."""
        try:
            parked = await driving
            if parked is not None:
                job.parked, due = parked
                job.park(due, self._going_on)
        except LeaseLost as lost:
            self.refused += 1
            log.info("%s", lost)
        finally:
            if job.parked is None:
                job.held_by = None

    async def _round_forever(self) -> None:
        watch = ClockWatch(self._clock)
        while True:
            wanted_at = self._clock.now() + LOOK_EVERY
            await self._clock.sleep(LOOK_EVERY)
            self.pulse.lag = max(self._clock.now() - wanted_at, 0)
            if watch.has_jumped():
                self.upheavals += 1
                for job in self._jobs.values():
                    job.recount()
                self._agenda.recount()
            try:
                await self._round()
                self.pulse.at = self._clock.now()
            except Exception as error:
                # Without rounds the lease would age and every waiter hang: they hear of it instead.
                log.exception("a round of the runtime failed")
                for job in list(self._jobs.values()):
                    job.fail(error)
                    job.rouse()

    async def _round(self) -> None:
        """Renew, free the jobs of the dead, and look."""
        if not await self._worker.keep():
            await self._worker.keep()
        self.upheavals += await self._worker.bury()
        await self._look()

    async def _look(self) -> None:
        """At what is owed, and at every job followed, if anything changed."""
        version = await self._units.run(self._store.version)
        if version != self._version or self.outbox.is_due:
            self.outbox.look()
        if version == self._version:
            return
        held = [(job.id, job.held_by, job.cmd) for job in self._jobs.values() if job.held_by is not None]
        for some in _some_at_a_time(held):
            for number in await self._units.run(self._store.moved, some):
                self.rouse(number)
        for numbers in _some_at_a_time([number for number, job in self._jobs.items() if job.held_by is None]):
            glances = {seen.id: seen for seen in await self._units.run(self._store.glance, numbers)}
            for job in (self._jobs[number] for number in numbers if number in self._jobs):
                job.glanced(glances.get(job.id))
        self._version = version  # only now: where one of these looks failed, the next round looks again


def _some_at_a_time(items: Sequence[T]) -> Iterator[Sequence[T]]:
    """Few enough for one call: others get their turn in between."""
    for start in range(0, len(items), _CHUNK):
        yield items[start : start + _CHUNK]


async def _ended(loops: Sequence[asyncio.Future[Any]]) -> None:
    for loop in loops:
        loop.cancel()
    await asyncio.gather(*loops, return_exceptions=True)
