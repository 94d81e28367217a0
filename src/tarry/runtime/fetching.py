"""Fetches the result of a job that ended well: its outcome is committed, its output not yet."""

from __future__ import annotations

import asyncio
import logging
from weakref import WeakValueDictionary

from tarry.codec import decode_spec, encode_state, state_of
from tarry.core.decision import Call
from tarry.core.document import document
from tarry.core.fetching import Fetch, FetchAgain, Fetched, NoResult, read_fetch
from tarry.core.observation import Observation
from tarry.core.output import output_of
from tarry.core.spec import JobSpec
from tarry.core.texts import as_json_text
from tarry.frozen import replace
from tarry.ports import Event, JobRow
from tarry.runtime.drive import Parts
from tarry.runtime.followed import Followed
from tarry.runtime.values import answers_of, last_answers_of
from tarry.runtime.views import lacks_result, unavailable
from tarry.words import CallKind, Instant, micros

log = logging.getLogger("tarry.runtime")


class Fetching:
    """Asks for results: a few times for each wait. Whoever needs one in this process asks in turn."""

    def __init__(self, parts: Parts) -> None:
        self._store = parts.store
        self._units = parts.units
        self._clock = parts.clock
        self._calls = parts.calls
        self._herald = parts.herald
        self._turns: WeakValueDictionary[int, asyncio.Lock] = WeakValueDictionary()

    async def run(self, job: Followed, row: JobRow) -> None:
        """End the wait for a job that is over, its result in the row where it has one to fetch.

        Raises `ResultUnavailable` when it cannot be had now. Leaves the job as it is once nobody waits.
        """
        found: JobRow | None = row
        tries = 0
        while found is not None and lacks_result(found):
            tries += 1
            found, read = await self.attempt(_spec(job, found), found, tries)
            if found is None or not lacks_result(found):
                break
            match read:
                case NoResult(why=why):
                    raise unavailable(found, why)
                case FetchAgain(wait=wait, why=why):
                    log.info("job %r: its result is not there yet: %s", found.key, why)
                    job.looked.set()
                    await self._rest(job, found, self._clock.now() + wait)
                    found = await self._reread(found) if job.waiters else None
        if found is not None and found.outcome is not None:
            job.finish(found)

    async def attempt(self, spec: JobSpec, row: JobRow, tries: int) -> tuple[JobRow | None, Fetch]:
        """Ask once, unless the result came meanwhile; the row after it (None: it is gone), and what the answer means."""
        async with self._turns.setdefault(row.id, asyncio.Lock()):
            found = await self._reread(row)
            if found is None or not lacks_result(found):
                return found, Fetched()
            call = Call(CallKind.FETCH, micros(spec.limits.poll_timeout))
            answers = last_answers_of(found)
            seen = await self._calls.make(spec, call, found.key, answers, found.token, found.carried)
            read = read_fetch(spec, seen, tries)
            match read:
                case Fetched():
                    await self._fetched(spec, found, seen, tries)
                case NoResult(why=why):
                    await self._missed(found, why)
            return await self._reread(found), read

    async def _fetched(self, spec: JobSpec, row: JobRow, seen: Observation, tries: int) -> None:
        selected, problem = output_of(spec, document(spec, state_of(row).polls, seen, answers_of(row)))
        await self._write(row, as_json_text(selected), problem, Event("fetched", self._clock.now(), {"tries": tries}))

    async def _missed(self, row: JobRow, why: str) -> None:
        await self._write(row, None, f"fetch: {why}", Event("fetch_failed", self._clock.now(), {"error": why}))

    async def _write(self, row: JobRow, output: str | None, error: str | None, told: Event) -> None:
        """Write what came of it, unless the row went on meanwhile: then another has fetched, or tried to."""
        state = encode_state(replace(state_of(row), error=error))
        if await self._units.run(self._store.fetched, row.id, row.step, state, output, [told]):
            found = await self._reread(row)
            if found is not None:
                await self._herald.catch_up_with_end(found)

    async def _rest(self, job: Followed, row: JobRow, until: Instant) -> None:
        """Rest until then, or until the result is there, or nobody waits."""
        while job.waiters and await job.rest(until):
            found = await self._reread(row)
            if found is None or not lacks_result(found):
                return

    async def _reread(self, row: JobRow) -> JobRow | None:
        rows = await self._units.run(self._store.rows, [row.id])
        return rows[0] if rows else None


def _spec(job: Followed, row: JobRow) -> JobSpec:
    """The spec of the caller where it says how to fetch (its callables are at hand), else the stored one."""
    return job.given if job.given is not None and job.given.fetch is not None else decode_spec(row.spec)
