"""The jobs of one namespace, as stored: found, created, listed, watched."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator

from tarry.codec import encode_spec, encode_state, fingerprint
from tarry.core.machine import start
from tarry.core.spec import JobSpec
from tarry.errors import JobNotFound, TarryError
from tarry.ports import FIRST, Event, JobRow, Listing, NewJob, Place, StoredEvent
from tarry.runtime.arguments import key_of
from tarry.runtime.bulletin import Bulletin
from tarry.runtime.drive import Parts
from tarry.runtime.hold import CLAIM_AHEAD
from tarry.runtime.pulse import LOOK_EVERY
from tarry.words import SECOND, Instant, Phase, micros

_PRUNED_AT_ONCE = 500
_PAUSE = SECOND // 20
"""Between two transactions of one prune: others get the lock."""


class Jobs:
    """What the store has of the jobs of a namespace; nothing in here is polled."""

    def __init__(self, parts: Parts, bulletin: Bulletin, namespace: str) -> None:
        self.namespace = namespace
        self._store = parts.store
        self._units = parts.units
        self._writer = parts.writer
        self._clock = parts.clock
        self._token = parts.token
        self._herald = parts.herald
        self._bulletin = bulletin

    async def found(self, key: str) -> JobRow:
        """The job with this key. Raises `JobNotFound`."""
        row = await self._writer.find((self.namespace, key_of(key)))
        if isinstance(row, TarryError):
            raise row
        if row is None:
            raise JobNotFound(f"no job has the key {key!r} in namespace {self.namespace!r}")
        return row

    async def heard_of(self, row: JobRow) -> None:
        """Tell what nobody was told of a job that is over."""
        if row.outcome is not None:
            await self._herald.catch_up_with_end(row)

    async def listed(self, page: Listing) -> list[JobRow]:
        """One page."""
        return await self._units.ask(self._store.listing, page)

    async def events(self, key: str, after: tuple[int, int], limit: int) -> list[StoredEvent]:
        """The stored events past the cursor, oldest first."""
        return await self._units.ask(self._store.events, self.namespace, key, after, limit)

    async def prune(self, before: Instant) -> int:
        """Forget the jobs that finished before then, some at a time; how many."""
        total, place = 0, FIRST
        while True:
            pruned, further = await self.prune_some(before, place)
            total += pruned
            if further is None:
                return total
            place = further
            await self._clock.sleep(_PAUSE)

    async def prune_some(self, before: Instant, place: Place) -> tuple[int, Place | None]:
        """Forget a few of them, past the place; how many, and where to go on."""
        return await self._units.ask(self._store.prune, self.namespace, before, place, _PRUNED_AT_ONCE)

    async def watch(self, key: str, after: tuple[int, int]) -> AsyncGenerator[StoredEvent]:
        """The events past the cursor as they come, until the job is over."""
        bell = asyncio.Event()
        stop = self._bulletin.listen(key, bell.set)
        try:
            while True:
                bell.clear()
                if self._bulletin.is_closed:
                    raise TarryError("the poller is closed; make another one")
                row = await self.found(key)
                events = await self.events(key, after, 100)
                for event in events:
                    after = (event.run, event.seq)
                    yield event
                if not events and row.outcome is not None:
                    return
                if not events:
                    await _rung(bell)
        finally:
            stop()

    async def made(self, key: str, spec: JobSpec, owner: int | None = None) -> tuple[JobRow, bool]:
        """The job, and whether it was made now: somebody else may have been faster. An owner takes it if it is wanted soon."""
        return await self.stored(self._new(key, spec, owner))

    async def stored(self, job: NewJob) -> tuple[JobRow, bool]:
        """The job, and whether it was stored now: there may have been one with its key."""
        key_of(job.key)
        added = await self._writer.add(job)
        if isinstance(added, TarryError):
            raise added
        row, created = added
        if created:
            told = [StoredEvent.of(row.key, row.run, seq, event) for seq, event in enumerate(job.events, 1)]
            self._herald.tell(row.id, told)
            await self._herald.write_down(row)
        return row, created

    def _new(self, key: str, spec: JobSpec, owner: int | None) -> NewJob:
        now = self._clock.now()
        state, _ = start(spec, key, now)
        due = now if state.due is None else state.due
        is_taken = owner is not None and due <= now + CLAIM_AHEAD
        return NewJob(
            namespace=self.namespace,
            key=key,
            token=self._token(),
            fingerprint=fingerprint(spec),
            spec=encode_spec(spec),
            labels=dict(spec.labels),
            state=encode_state(state),
            phase=state.phase,
            created_at=now,
            due=due,
            deadline=state.deadline,
            max_polls=spec.limits.max_polls,
            floor=micros(spec.limits.min_interval),
            events=[Event("created", now)],
            owner=owner if is_taken else None,
            reserved=int(is_taken and state.phase is Phase.WAITING),
        )


async def _rung(bell: asyncio.Event) -> None:
    try:
        async with asyncio.timeout(LOOK_EVERY / SECOND):
            await bell.wait()
    except TimeoutError:
        return
