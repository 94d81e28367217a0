"""When jobs that rest without a task go on: one heap and one timer, however many there are."""

from __future__ import annotations

import asyncio
from heapq import heappop, heappush
from itertools import count
from typing import Protocol

from tarry.ports import Clock
from tarry.words import DAY, SECOND, Instant, Micros

LONGEST: Micros = DAY
"""The longest rest before the clock is read again; where the clock jumps, all rests are measured anew (`recount`)."""


class Resting(Protocol):
    """Who rests until `parked_until`, if it still does."""

    parked_until: Instant | None

    def recount(self) -> None:
        """Go on, or rest for what is left."""


class Agenda:
    """Has parked jobs go on when their time has come; one that went on before is passed over."""

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._line: list[tuple[Instant, int, Resting]] = []
        self._number = count()
        self._timer: asyncio.TimerHandle | None = None
        self._rings_at: Instant = 0

    def enter(self, job: Resting, at: Instant) -> None:
        """Have it go on then."""
        heappush(self._line, (at, next(self._number), job))
        if self._timer is None or at < self._rings_at:
            self._set(at)

    def end(self) -> None:
        """Forget all."""
        self._line.clear()
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None

    def _set(self, at: Instant) -> None:
        if self._timer is not None:
            self._timer.cancel()
        left = min(max(at - self._clock.now(), 0), LONGEST)
        self._rings_at = at
        self._timer = asyncio.get_running_loop().call_later(left / SECOND, self._ring)

    def _ring(self) -> None:
        self._timer = None
        now = self._clock.now()
        while self._line and self._line[0][0] <= now:
            at, _, job = heappop(self._line)
            if job.parked_until == at:
                job.recount()
        if self._line:
            self._set(self._line[0][0])
