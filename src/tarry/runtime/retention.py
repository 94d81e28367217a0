"""A worker forgets what has been over for long, if it was told to: a few jobs at a time, between its rounds."""

from __future__ import annotations

import logging

from tarry.errors import StoreError
from tarry.ports import FIRST, Clock, Place
from tarry.runtime.jobs import Jobs
from tarry.words import MINUTE, Instant, Micros

log = logging.getLogger("tarry.worker")

REST: Micros = MINUTE
"""How long there is nothing to look for after a look that found no more."""


class Retention:
    """Keeps finished jobs for as long as `keep`; for ever, if that is None."""

    def __init__(self, jobs: Jobs, clock: Clock, keep: Micros | None) -> None:
        self._jobs = jobs
        self._clock = clock
        self._keep = keep
        self._place: Place = FIRST
        self._from: Instant = 0

    async def some(self) -> None:
        """Forget a few, if it is time to; the next few follow after the next round."""
        now = self._clock.now()
        if self._keep is None or now < self._from:
            return
        try:
            number, further = await self._jobs.prune_some(now - self._keep, self._place)
        except StoreError as error:
            log.warning("finished jobs cannot be forgotten for now: %s", error)
            number, further = 0, None
        if number:
            log.debug("%d finished jobs were forgotten", number)
        self._place = further or FIRST
        self._from = now if further else now + REST
