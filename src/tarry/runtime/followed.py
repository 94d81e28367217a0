"""A job that somebody in this process waits for."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Sequence
from contextvars import copy_context

from tarry.codec import decode_spec
from tarry.core.spec import JobSpec
from tarry.errors import WaitTimeout
from tarry.ports import Clock, Glance, JobRow
from tarry.runtime.agenda import NEAR, Agenda, Appointment
from tarry.runtime.hold import Hold
from tarry.runtime.signal import Signal
from tarry.runtime.specs import one_text, unknown_callable, with_callables
from tarry.words import DAY, SECOND, Instant, Micros

log = logging.getLogger("tarry.runtime")

LONGEST: Micros = DAY
"""The longest rest before the clock is read again; where the clock jumps, all rests are measured anew (`recount`)."""


class Followed:
    """One job, the callers that wait for it, and the bell that rouses its loop.

    Several callers share one of these: `waiters` counts them, `over` holds
    the final row, and `looked` rings once the loop has done what could be done at once.
    `is_taken` while a worker is one of the waiters, who leaves when the job is not held
    any more; then `driven` rings, and `broke` says whether that was an accident. `rests_until` is when a rest ends that
    the agenda knows of. `is_ripe` after a rest that nothing disturbed, if the job could be had before it and is wanted
    now. `parked` is what is held of it while it rests without a task; all its tasks run in the
    `surroundings` of its first caller, as contextvars have it.
    """

    __slots__ = (
        "_agenda",
        "_bell",
        "_clock",
        "_go_on",
        "_is_foreign",
        "_is_roused",
        "_read",
        "_step",
        "_wanted_at",
        "appointment",
        "broke",
        "cmd",
        "driven",
        "given",
        "held_by",
        "id",
        "is_ripe",
        "is_taken",
        "key",
        "looked",
        "over",
        "parked",
        "rests_until",
        "surroundings",
        "waiters",
    )

    def __init__(self, row: JobRow, clock: Clock, agenda: Agenda) -> None:
        self.id = row.id
        self.key = row.key
        self.waiters = 0
        self.held_by: int | None = None
        self.cmd = row.cmd
        self.given: JobSpec | None = None
        self._read: tuple[str, JobSpec] | None = None
        self._step = row.step
        self._wanted_at: Instant | None = None
        self._is_foreign = False
        self.looked = Signal()
        self.is_ripe = False
        self.is_taken = False
        self.driven = Signal()
        self.broke = False
        self.over: asyncio.Future[JobRow] = asyncio.get_running_loop().create_future()
        self._clock = clock
        self._agenda = agenda
        self._is_roused = False
        self._bell: asyncio.Future[None] | None = None
        self.parked: Hold | None = None
        self.surroundings = copy_context()
        self.rests_until: Instant | None = None
        self.appointment: Appointment | None = None
        self._go_on: Callable[[Followed], None] | None = None

    def finish(self, row: JobRow) -> None:
        """The job is over."""
        if not self.over.done():
            self.over.set_result(row)
        self.looked.set()

    def fail(self, error: Exception) -> None:
        """The job cannot be followed here; every waiter gets the error."""
        if not self.over.done():
            self.over.set_exception(error)
            self.over.exception()  # Marked as seen: a waiter may have left already.
        self.looked.set()

    def rouse(self) -> None:
        """End the loop's rest, so that it looks again."""
        self._is_roused = True
        self.recount()

    def recount(self) -> None:
        """Have the rest measured anew: the clock was set, or the machine slept."""
        if self._go_on is not None:
            go_on, self._go_on, self.rests_until = self._go_on, None, None
            go_on(self)
        elif self._bell is not None and not self._bell.done():
            self._bell.set_result(None)

    def glanced(self, seen: Glance | None) -> None:
        """Rouse the loop when the row moved on without it, got a command, or is gone."""
        if seen is None:
            self.rouse()
            return
        moved = seen.step != self._step if self.held_by is None else seen.owner != self.held_by
        if moved or seen.cmd != self.cmd or seen.outcome is not None:
            self.rouse()

    def wanted(self, at: Instant, row: JobRow) -> Instant:
        """When the row wants a call; looking again at the same one puts nothing off."""
        known = self._wanted_at if (row.step, row.cmd) == (self._step, self.cmd) else None
        self._step, self.cmd, self._wanted_at = row.step, row.cmd, at if known is None else min(known, at)
        return self._wanted_at

    def is_claim_of_known(self, claimed: JobRow) -> bool:
        """Whether nothing but this claim has moved the row since it was looked at."""
        return (claimed.step - 1, claimed.cmd) == (self._step, self.cmd)

    def bring(self, spec: JobSpec | None) -> None:
        """A caller comes with this spec."""
        if spec is not None:
            self.given, self._read = spec, None

    def spec_of(self, text: str) -> JobSpec:
        """The stored spec, with the callables that a caller here brought: they may have no importable name."""
        if self._read is None or self._read[0] != text:
            spec = decode_spec(text) if self.given is None else with_callables(text, self.given)
            self._read = one_text(text), spec
        return self._read[1]

    def runs_here(self, spec: JobSpec) -> bool:
        """Whether this process knows the callables of the spec; if not, the job is left to others, and once said so."""
        unknown = unknown_callable(spec)
        if unknown is not None:
            level = logging.DEBUG if self._is_foreign else logging.WARNING
            log.log(level, "job %r is left to others: %s", self.key, unknown)
            self._is_foreign = True
        return unknown is None

    @property
    def is_roused(self) -> bool:
        """Whether it is to look again."""
        return self._is_roused

    def heed(self) -> None:
        """What it was roused for is known."""
        self._is_roused = False

    def park(self, until: Instant, go_on: Callable[[Followed], None]) -> None:
        """Rest without a task until then, which is near: `go_on` is called once, or earlier where the job is roused."""
        self.rests_until, self._go_on = until, go_on
        self._agenda.enter(self, until)

    async def rest(self, until: Instant | None) -> bool:
        """Rest until then (None: until roused); True when it was roused before."""
        loop = asyncio.get_running_loop()
        while not self._is_roused:
            left = None if until is None else until - self._clock.now()
            if left is not None and left <= 0:
                return False
            bell = self._bell = loop.create_future()
            if until is None or left is None:
                await bell
            elif left <= NEAR:
                self.rests_until = until
                self._agenda.enter(self, until)
                await bell
                self.rests_until = None
            else:
                alarm = loop.call_later(min(left, LONGEST) / SECOND, self.recount)
                try:
                    await bell
                finally:
                    alarm.cancel()
        self._is_roused = False
        return True

    async def wait(self, patience: Micros | None) -> JobRow:
        """The final row; raises `WaitTimeout` when the caller's patience ends first (0: look once)."""
        await until_over([self], patience)
        return self.ended()

    def ended(self) -> JobRow:
        """The final row; raises `WaitTimeout` while the job goes on."""
        if not self.over.done():
            log.info("job %r: a caller's patience is over; the job lives on", self.key)
            raise WaitTimeout(
                f"job {self.key!r} is not over yet; it lives on, wait for the same key again", key=self.key
            )
        return self.over.result()


async def until_over(jobs: Sequence[Followed], patience: Micros | None) -> None:
    """Until all are over, or cannot be followed, or the patience ends (0: until each was looked at)."""
    if patience == 0:
        for job in jobs:
            await job.looked.wait()
    elif jobs:
        await asyncio.wait({job.over for job in jobs}, timeout=None if patience is None else patience / SECOND)
