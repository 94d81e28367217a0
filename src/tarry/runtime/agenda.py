"""When jobs that rest go on: one heap and one timer, however many there are."""

from __future__ import annotations

import asyncio
from heapq import heappop, heappush
from itertools import count
from typing import Protocol

from tarry.ports import Clock
from tarry.words import SECOND, Instant, Micros

NEAR: Micros = 30 * SECOND
"""The longest rest that is entered: what is entered stays until its time, though its job may have gone on long before."""


class Resting(Protocol):
    """Who rests until `rests_until`, if it still does, and is entered for `entered_at` or earlier."""

    rests_until: Instant | None
    entered_at: Instant | None

    def recount(self) -> None:
        """Go on, or rest for what is left."""


class Agenda:
    """Has jobs go on when their time has come; one that went on before is passed over."""

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._line: list[tuple[Instant, int, Resting]] = []
        self._number = count()
        self._timer: asyncio.TimerHandle | None = None
        self._rings_at: Instant = 0

    def enter(self, job: Resting, at: Instant) -> None:
        """Have it go on then, which is near, and is when its rest ends.

        One that is entered for an earlier time, of a rest that was broken off, is asked then how long it rests by now.
        """
        if job.entered_at is not None and job.entered_at <= at:
            return
        job.entered_at = at
        heappush(self._line, (at, next(self._number), job))
        if self._timer is None or at < self._rings_at:
            self._set(at)

    @property
    def entries(self) -> int:
        """How many there are; a job may have several, if its rests get shorter."""
        return len(self._line)

    def end(self) -> None:
        """Forget all."""
        for _, _, job in self._line:
            job.entered_at = None
        self._line.clear()
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None

    def _set(self, at: Instant) -> None:
        if self._timer is not None:
            self._timer.cancel()
        self._rings_at = at
        self._timer = asyncio.get_running_loop().call_later(max(at - self._clock.now(), 0) / SECOND, self._ring)

    def _ring(self) -> None:
        self._timer = None
        now = self._clock.now()
        while self._line and self._line[0][0] <= now:
            at, _, job = heappop(self._line)
            if job.entered_at == at:
                job.entered_at = None
            until = job.rests_until
            if until is not None and until > now:
                self.enter(job, until)
            elif until is not None:
                job.recount()
        if self._line:
            self._set(self._line[0][0])
