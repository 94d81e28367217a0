"""The worker: takes whatever is due in the store, and has the engine poll it.

A sweep walks along the jobs that want an owner, in the order in which they
came to want one, and claims those that can be polled here, many in one
transaction. What sleeps long is a row and nothing else: only jobs that are due
soon are claimed, and a job is given back when its next wait is long.
"""

from __future__ import annotations

import logging
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import TypeAlias

from tarry.codec import decode_spec
from tarry.errors import CheckpointError, SpecError
from tarry.ports import FIRST, JobRow, Place
from tarry.runtime.drive import Parts
from tarry.runtime.engine import Engine
from tarry.runtime.followed import Followed
from tarry.runtime.hold import CLAIM_AHEAD, Hold
from tarry.runtime.retention import Retention
from tarry.runtime.specs import unknown_callable
from tarry.runtime.stagger import LATE, MOST, Stagger
from tarry.words import MINUTE, SECOND, Instant, Micros

log = logging.getLogger("tarry.worker")

SWEEP_EVERY: Micros = SECOND // 2
"""How often a worker looks for jobs that are due."""

SWEEP_AGAIN: Micros = SECOND // 10
"""How soon it looks again when some host had more jobs due than there was room for."""

LINE = 64
"""How many jobs of one host are claimed and not polled yet; more stay in the store, for others as well."""

_PAGE = 250
_PAGES = 2
_MOST_KNOWN = 20_000
_GLANCE = 20
_ASIDE: Micros = MINUTE
_FAR: Instant = (1 << 62) - 1

_Wanted: TypeAlias = dict[int, str]


@dataclass(frozen=True, slots=True)
class _Known:
    """What a row came to at this step: its host, or None where it cannot be polled here, which is looked at again."""

    step: int
    host: str | None
    until: Instant


class Sweep:
    """Finds the due jobs of one namespace; `run` until stopped, `once` for one round."""

    def __init__(self, parts: Parts, engine: Engine, namespace: str, retention: Retention) -> None:
        self._store = parts.store
        self._units = parts.units
        self._clock = parts.clock
        self._worker = parts.worker
        self._token = parts.token
        self._engine = engine
        self._namespace = namespace
        self._retention = retention
        self._line: dict[int, tuple[Followed, str]] = {}
        self._known: dict[int, _Known] = {}
        self._is_crowded = False
        self._stagger = Stagger(began=0, overdue=0)
        self.late: Micros = 0
        """By how much the oldest job of the last round was late."""
        self._upheavals: int | None = None

    async def run(self, *, until_idle: bool) -> None:
        """Poll what is due until the engine closes, or until no job is left that could be polled here."""
        await self._engine.ready()
        taken: dict[int, Followed] = {}
        place = FIRST
        try:
            while not self._engine.is_closing:
                await self._spread_what_is_overdue()
                jobs, place = await self._round(place)
                taken = {number: job for number, job in taken.items() if job.is_taken} | jobs
                await self._retention.some()
                if until_idle and not taken and await self._is_idle():
                    await self._engine.outbox.drain()
                    return
                await self._clock.sleep(SWEEP_AGAIN if self._is_crowded else SWEEP_EVERY)
        finally:
            for job in taken.values():
                self._engine.give_back(job)

    async def _spread_what_is_overdue(self) -> None:
        """At the begin, when the jobs of a worker that died were freed, and after a jump of the clock."""
        if self._upheavals == self._engine.upheavals:
            return
        self._upheavals, now = self._engine.upheavals, self._clock.now()
        overdue, _ = await self._units.run(self._store.due, self._namespace, now - LATE, FIRST, MOST)
        self._stagger = Stagger(now, len(overdue))

    async def once(self, limit: int) -> int:
        """Do what is due now of up to `limit` jobs; how many they were."""
        if limit < 1:
            raise SpecError("limit", "use 1 or more")
        await self._engine.ready()
        jobs: list[Followed] = []
        place: Place | None = FIRST
        while place is not None and len(jobs) < limit:
            found, place = await self._page(self._clock.now(), place, limit - len(jobs))
            jobs += (await self._claimed({row.id: host for row, host in found})).values()
            await self._looked_at(jobs)
        await self._engine.outbox.drain(limit)
        await self._retention.some()
        return len(jobs)

    async def one(self, row: JobRow) -> bool:
        """Do what is due now of this job; False when another holds it or it cannot be polled here."""
        await self._engine.ready()
        host = None if row.owner is not None else self._host(row)
        if host is None:
            return False
        if row.wake is None or row.wake > self._clock.now():
            return True
        jobs = await self._claimed({row.id: host})
        await self._looked_at(list(jobs.values()))
        return bool(jobs)

    async def _looked_at(self, jobs: Sequence[Followed]) -> None:
        """Until each was polled, or has to wait, and was given back."""
        try:
            for job in jobs:
                await job.looked.wait()
                self._engine.give_back(job)
            for job in jobs:
                await job.driven.wait()
        finally:
            for job in jobs:
                self._engine.give_back(job)

    async def _round(self, place: Place) -> tuple[dict[int, Followed], Place]:
        """Claim what is due and has room, from the place on; the jobs, and where to go on."""
        chosen: _Wanted = {}
        self._is_crowded, self.late = False, 0
        until = self._clock.now() + CLAIM_AHEAD
        for _ in range(_PAGES):
            found, further = await self._page(until, place, _PAGE)
            chosen |= self._with_room(found, until)
            oldest = min((row.wake for row, _ in found if row.wake is not None), default=until)
            self.late = max(self.late, until - CLAIM_AHEAD - oldest)
            place = FIRST if further is None else further
            if further is None:
                break
        return await self._claimed(chosen, self._stagger), place

    async def _page(self, until: Instant, place: Place, limit: int) -> tuple[list[tuple[JobRow, str]], Place | None]:
        """The next jobs that can be polled here, each with its host, and where to go on."""
        rows, further = await self._units.run(self._store.due, self._namespace, until, place, min(limit, _PAGE))
        found = ((row, self._host(row)) for row in rows)
        return [(row, host) for row, host in found if host is not None], further

    def _with_room(self, found: Iterable[tuple[JobRow, str]], until: Instant) -> Iterator[tuple[int, str]]:
        """Those whose time has come: a host that is slow keeps its own jobs waiting, and nobody else's."""
        self._line = {number: place for number, place in self._line.items() if not place[0].looked.is_set()}
        room = Counter(host for _, host in self._line.values())
        for row, host in found:
            if (self._stagger.start(row) or until) > until:
                continue
            if room[host] >= LINE:
                self._is_crowded = True
            else:
                room[host] += 1
                yield row.id, host

    async def _claimed(self, chosen: _Wanted, stagger: Stagger | None = None) -> dict[int, Followed]:
        worker, now = self._worker.id, self._clock.now()
        if not chosen or worker is None:
            return {}
        rows = await self._units.run(self._store.claim, worker, self._token(), now, list(chosen))
        late = [row.grip for row in rows if not self._engine.may_take(row.id)]
        jobs = {
            row.id: self._engine.take(row, stagger.start(row) if stagger else None)
            for row in rows
            if self._engine.may_take(row.id)
        }
        if late:
            await self._units.run(self._store.release, late, now)
        for number, job in jobs.items():
            self._line[number] = (job, chosen[number])
            self._known.pop(number, None)
        return jobs

    def _host(self, row: JobRow) -> str | None:
        """The host of the job's next call; None where it is looked after already, or cannot be polled here."""
        if not self._engine.may_take(row.id):
            return None
        known = self._known.get(row.id)
        if known is None or known.step != row.step or (known.host is None and self._clock.now() >= known.until):
            if len(self._known) >= _MOST_KNOWN:
                self._known.clear()
            known = self._known[row.id] = _Known(row.step, self._looked_into(row), self._clock.now() + _ASIDE)
        return known.host

    def _looked_into(self, row: JobRow) -> str | None:
        try:
            hold = Hold.of(row, decode_spec(row.spec))
            problem: Exception | None = unknown_callable(hold.spec)
            if problem is None:
                return hold.host(hold.next_kind)
        except CheckpointError as damaged:
            problem = damaged
        if row.id not in self._known:
            log.warning("job %r is left alone: %s", row.key, problem)
        return None

    async def _is_idle(self) -> bool:
        """Whether no job is left but those that cannot be polled here; as of one moment, or not known."""
        before = await self._units.run(self._store.version)
        if await self._units.run(self._store.held, self._namespace):
            return False
        place: Place | None = FIRST
        while place is not None:
            rows, place = await self._units.run(self._store.due, self._namespace, _FAR, place, _GLANCE)
            if any(self._host(row) is not None for row in rows):
                return False
        return await self._units.run(self._store.version) == before
