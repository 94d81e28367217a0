"""When jobs that rest go on: one heap and one timer, however many there are."""

from __future__ import annotations

import asyncio
from heapq import heappop, heappush
from itertools import count
from typing import Protocol, TypeAlias

from tarry.ports import Clock
from tarry.words import SECOND, Instant, Micros

NEAR: Micros = 30 * SECOND
"""The longest rest that is entered: what is entered stays until its time, though its job may have gone on long before."""


Appointment: TypeAlias = tuple[Instant, int]
"""When to look whether a job's rest is over, and a number that no other has."""


class Resting(Protocol):
    """Who rests until `rests_until`, if it still does; `appointment` is its own in the agenda, for that time or earlier."""

    rests_until: Instant | None
    appointment: Appointment | None

    def recount(self) -> None:
        """Go on, or rest for what is left."""


class Agenda:
    """Has jobs go on when their time has come; one that went on before is passed over."""

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        # Instants and numbers alone: Python's collector, which stops the loop, has nothing to follow in them.
        self._line: list[Appointment] = []
        self._resting: dict[int, Resting] = {}
        self._number = count()
        self._timer: asyncio.TimerHandle | None = None
        self._rings_at: Instant = 0

    def enter(self, job: Resting, at: Instant) -> None:
        """Have it go on then, which is near, and is when its rest ends.

        A job has one appointment: where an earlier one is left of a rest that was broken off, that one asks it how long
        it rests by now.
        """
        appointment = job.appointment
        if appointment is not None and appointment[0] <= at:
            return
        self.leave(job)
        number = next(self._number)
        job.appointment = appointment = at, number
        self._resting[number] = job
        heappush(self._line, appointment)
        if self._timer is None or at < self._rings_at:
            self._set(at)

    def leave(self, job: Resting) -> None:
        """Keep nothing of it: it is over, or nobody waits for it any more."""
        appointment, job.appointment = job.appointment, None
        if appointment is not None:
            self._resting.pop(appointment[1], None)

    def recount(self) -> None:
        """The clock was set, or the machine slept: measure anew when the first is to go on."""
        if self._line:
            self._set(self._line[0][0])

    def end(self) -> None:
        """Forget all."""
        for job in list(self._resting.values()):
            self.leave(job)
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
            job = self._resting.pop(heappop(self._line)[1], None)
            if job is not None:
                job.appointment, until = None, job.rests_until
                if until is not None and until > now:
                    self.enter(job, until)
                elif until is not None:
                    job.recount()
        if self._line:
            self._set(self._line[0][0])
