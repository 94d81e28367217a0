"""Waits for jobs, no longer than the caller's patience."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator, Mapping
from typing import Any, TypeAlias

from pydantic import TypeAdapter

from tarry.core.results import JobResult
from tarry.core.spec import JobSpec
from tarry.core.typed import Output, typed
from tarry.errors import ResultUnavailable, TarryError, WaitTimeout
from tarry.ports import Clock, JobRow
from tarry.runtime.attaching import Attaching, Reuse
from tarry.runtime.begin import begin
from tarry.runtime.engine import Engine
from tarry.runtime.followed import Followed, until_over
from tarry.runtime.jobs import Jobs
from tarry.runtime.views import failure, lacks_result, result
from tarry.runtime.writer import MOST
from tarry.words import SECOND, Micros

Ended: TypeAlias = JobResult[Any] | TarryError
"""The result of a job that ended well, or why there is none: a value, so that one failure hurts no other."""


class Waiting:
    """The callers of one process. `close` it before the engine."""

    def __init__(self, engine: Engine, jobs: Jobs, attaching: Attaching, clock: Clock) -> None:
        self._engine = engine
        self._jobs = jobs
        self._attaching = attaching
        self._clock = clock
        self._coming: set[asyncio.Task[JobRow]] = set()
        self._is_closed = False

    async def one(
        self,
        key: str,
        spec: JobSpec | None,
        adapter: TypeAdapter[Output] | None = None,
        *,
        reuse: Reuse,
        patience: Micros | None,
        raises: bool,
    ) -> JobResult[Output]:
        """The result of a job, however it ended; with `raises` only of one that ended well.

        The adapter, if any, validates the output of one that ended well, and was fetched.
        """
        began = self._clock.now()
        joined = await self._joined(key, spec, reuse, patience)
        if isinstance(joined, Followed):
            joined = await self._end_of(
                joined, patience and max(began + patience - self._clock.now(), 1), raises=raises
            )
        return _result(joined, adapter, raises=raises)

    async def all(
        self, specs: Mapping[str, JobSpec | None], *, reuse: Reuse, patience: Micros | None
    ) -> dict[str, Ended]:
        """Each job's result or error, in the order given."""
        began = self._clock.now()
        joined: dict[str, JobRow | Followed | TarryError] = {}

        def left() -> Micros | None:
            return patience and max(began + patience - self._clock.now(), 1)

        async def join(key: str) -> None:
            try:
                joined[key] = await self._joined(key, specs[key], reuse, left())
            except TarryError as error:
                joined[key] = error

        try:
            for some in _some_at_a_time(list(specs)):
                # Each comes to its end, so that whoever joined is left again.
                for problem in await asyncio.gather(*map(join, some), return_exceptions=True):
                    if problem is not None:
                        raise problem
            await until_over([job for job in joined.values() if isinstance(job, Followed)], left())
            return {key: _ended(joined[key]) for key in specs}
        finally:
            for job in joined.values():
                if isinstance(job, Followed):
                    self._engine.leave(job)

    async def close(self) -> None:
        """Let callers join no more: what they have asked of the store comes to its end, so that all it made is known."""
        self._is_closed = True
        coming = list(self._coming)
        for each in coming:
            each.cancel()
        await asyncio.gather(*coming, return_exceptions=True)

    async def _joined(self, key: str, spec: JobSpec | None, reuse: Reuse, patience: Micros | None) -> JobRow | Followed:
        """The final row of a job that is over, or else the job, followed; pair it with `leave`."""
        row = await self._row(key, spec, reuse, patience)
        await self._jobs.heard_of(row)
        return row if row.outcome is not None and not lacks_result(row) else self._engine.follow(row, spec)

    async def _end_of(self, job: Followed, patience: Micros | None, *, raises: bool) -> JobRow:
        """The final row of a job that is followed, which is left then."""
        try:
            return await job.wait(patience)
        except ResultUnavailable:
            if raises:
                raise
            return await self._jobs.found(job.key)
        finally:
            self._engine.leave(job)

    async def _row(self, key: str, spec: JobSpec | None, reuse: Reuse, patience: Micros | None) -> JobRow:
        """The row to wait for; a store that takes its time is waited for no longer than a job."""
        if self._is_closed:
            raise TarryError("the poller is closed")
        coming = begin(self._attaching.row(key, spec, reuse, self._engine.hand), name=f"tarry attaches {key!r}")
        self._coming.add(coming)
        coming.add_done_callback(self._coming.discard)
        try:
            # A caller without any patience looks once, and that is what this is.
            await asyncio.wait({coming}, timeout=patience / SECOND if patience else None)
        finally:
            if not coming.done():
                coming.cancel()  # It cannot be cut short, and comes to its end without its caller.
        if not coming.done():
            raise WaitTimeout(f"the store has not answered for job {key!r} yet; wait for the same key again", key=key)
        if coming.cancelled():
            raise TarryError(f"the poller was closed; wait for job {key!r} with another one")
        return coming.result()


def _some_at_a_time(keys: list[str]) -> Iterator[list[str]]:
    """As many as the store is asked of together: a crowd that joins at once would leave its memory behind."""
    for start in range(0, len(keys), MOST):
        yield keys[start : start + MOST]


def _ended(found: JobRow | Followed | TarryError) -> Ended:
    """The result or the error, as a value."""
    if isinstance(found, TarryError):
        return found
    try:
        return _result(found.ended() if isinstance(found, Followed) else found, None, raises=True)
    except TarryError as error:
        return error


def _result(row: JobRow, adapter: TypeAdapter[Output] | None, *, raises: bool) -> JobResult[Output]:
    ended = result(row)
    if raises and not ended.outcome.is_success:
        raise failure(row)
    return typed(ended, adapter if ended.outcome.is_success and not lacks_result(row) else None)
