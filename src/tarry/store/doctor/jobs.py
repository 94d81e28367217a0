"""Jobs that need somebody: late, asleep for ever, quarantined, owed something, long over."""

from __future__ import annotations

from collections.abc import Iterator

from sqlalchemy import func, select

from tarry.core.durations import write
from tarry.ports import QUARANTINED
from tarry.store.doctor.findings import Finding, Level, Patient
from tarry.store.doctor.workers import are_alive, newest_lease
from tarry.words import DAY, HOUR, MINUTE, SECOND, DeliveryState, Micros, span

_LATE: Micros = MINUTE
_KEPT: Micros = 30 * DAY
_LONGEST_LEASE: Micros = HOUR
_AHEAD: Micros = MINUTE


def overdue(patient: Patient) -> Iterator[Finding]:
    """Jobs that want an owner and find none."""
    job = patient.tables.job
    late = (job.c.wake < patient.now - _LATE, job.c.owner.is_(None))
    number, text = patient.jobs(*late)
    if not number:
        yield Finding("overdue", Level.OK, "no job waits for a worker for more than a minute")
        return
    longest = _rounded(patient.now - patient.number(select(func.min(job.c.wake)).where(*late)))
    why = (
        "the workers are too few, or cannot poll them (a module not imported, a damaged row): see their logs"
        if are_alive(patient)
        else "no worker runs: `tarry run`"
    )
    yield Finding("overdue", Level.WARNING, f"{text} due for up to {longest}: {why}")


def asleep(patient: Patient) -> Iterator[Finding]:
    """Jobs that go on, and that nothing will ever wake."""
    job = patient.tables.job
    number, text = patient.jobs(job.c.outcome.is_(None), job.c.owner.is_(None), job.c.wake.is_(None), job.c.paused == 0)
    if number:
        yield Finding("asleep", Level.ERROR, f"{text} not over and never polled again: `tarry nudge KEY` wakes it")


def quarantined(patient: Patient) -> Iterator[Finding]:
    """Jobs that ended the processes that called them."""
    number, text = patient.jobs(patient.tables.job.c.paused == QUARANTINED)
    if number:
        what = "quarantined, as processes ended while they were called: mend that, then `tarry resume KEY`"
        yield Finding("quarantine", Level.WARNING, f"{text} {what}")


def undelivered(patient: Patient) -> Iterator[Finding]:
    """What is owed for jobs and was given up."""
    outbox = patient.tables.outbox
    dead = select(func.count()).select_from(outbox).where(outbox.c.state == DeliveryState.DEAD.value)
    number = patient.number(dead)
    if number:
        text = f"{number} given up: Poller.dead_letters() tells why, redeliver(key) tries again"
        yield Finding("deliveries", Level.WARNING, text)


def kept(patient: Patient) -> Iterator[Finding]:
    """Jobs that have been over for long."""
    number, _ = patient.jobs(patient.tables.job.c.finished_at < patient.now - _KEPT)
    if number:
        text = (
            f"{number} over for more than 30 days: `tarry prune --older-than 30d`, or `tarry run --keep-finished 30d`"
        )
        yield Finding("retention", Level.NOTE, text)


def from_the_future(patient: Patient) -> Iterator[Finding]:
    """Rows that were written by a clock ahead of this one."""
    job = patient.tables.job
    ahead = max(
        *(patient.number(select(func.max(job.c[name]))) for name in ("created_at", "polled_at", "finished_at")),
        newest_lease(patient) - _LONGEST_LEASE,
    )
    if ahead > patient.now + _AHEAD:
        text = f"rows are {_rounded(ahead - patient.now)} ahead of this machine's clock: check the clocks"
        yield Finding("clock", Level.WARNING, text)
    else:
        yield Finding("clock", Level.OK, "no row is from the future")


def _rounded(time: Micros) -> str:
    return write(span(time // SECOND * SECOND))
