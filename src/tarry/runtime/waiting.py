"""Waits for jobs, no longer than the caller's patience."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from typing import Any, TypeAlias

from pydantic import TypeAdapter

from tarry.core.results import JobResult
from tarry.core.spec import JobSpec
from tarry.core.typed import Output, typed
from tarry.errors import ResultUnavailable, TarryError, WaitTimeout
from tarry.ports import Clock, JobRow
from tarry.runtime.attaching import Attaching, Reuse
from tarry.runtime.engine import Engine
from tarry.runtime.jobs import Jobs
from tarry.runtime.views import failure, lacks_result, result
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
        self._strays: set[asyncio.Task[JobRow]] = set()

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
        row = await self._over(key, spec, reuse, patience, raises=raises)
        ended = result(row)
        if raises and not ended.outcome.is_success:
            raise failure(row)
        return typed(ended, adapter if ended.outcome.is_success and not lacks_result(row) else None)

    async def all(
        self, specs: Mapping[str, JobSpec | None], *, reuse: Reuse, patience: Micros | None
    ) -> dict[str, Ended]:
        """Each job's result or error, in the order given."""

        async def ended(key: str, spec: JobSpec | None) -> Ended:
            try:
                return await self.one(key, spec, reuse=reuse, patience=patience, raises=True)
            except TarryError as error:
                return error

        found = await asyncio.gather(*(ended(key, spec) for key, spec in specs.items()))
        return dict(zip(specs, found, strict=True))

    async def close(self) -> None:
        """End what callers no longer wait for."""
        for stray in self._strays:
            stray.cancel()
        await asyncio.gather(*self._strays, return_exceptions=True)

    async def _over(
        self, key: str, spec: JobSpec | None, reuse: Reuse, patience: Micros | None, *, raises: bool
    ) -> JobRow:
        """The final row of a job."""
        began = self._clock.now()
        row = await self._row(key, spec, reuse, patience)
        await self._jobs.heard_of(row)
        if row.outcome is not None and not lacks_result(row):
            return row
        left = patience and max(began + patience - self._clock.now(), 1)
        job = self._engine.follow(row, spec)
        try:
            return await job.wait(left)
        except ResultUnavailable:
            if raises:
                raise
            return await self._jobs.found(key)
        finally:
            self._engine.leave(job)

    async def _row(self, key: str, spec: JobSpec | None, reuse: Reuse, patience: Micros | None) -> JobRow:
        """The row to wait for; a store that takes its time is waited for no longer than a job."""
        coming = asyncio.create_task(self._attaching.row(key, spec, reuse), name=f"tarry attaches {key!r}")
        try:
            # A caller without any patience looks once, and that is what this is.
            await asyncio.wait({coming}, timeout=patience / SECOND if patience else None)
        finally:
            if not coming.done():
                self._leave(coming)
        if not coming.done():
            raise WaitTimeout(f"the store has not answered for job {key!r} yet; wait for the same key again", key=key)
        return coming.result()

    def _leave(self, coming: asyncio.Task[JobRow]) -> None:
        """Let a call of the store come to its end without its caller: it cannot be cut short."""
        coming.cancel()
        self._strays.add(coming)
        coming.add_done_callback(self._strays.discard)
