"""Rules that every row keeps, and rows that cannot be read."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from sqlalchemy import exists, func, or_, select
from sqlalchemy.sql import ColumnElement

from tarry.codec import decode_spec, state_of
from tarry.errors import CheckpointError
from tarry.store.doctor.findings import Finding, Level, Patient, named
from tarry.store.rows import job_row
from tarry.store.statements import whole_rows
from tarry.store.tables import Tables
from tarry.words import Phase

_PAGE = 500
_NAMED = 3


def rules(patient: Patient) -> Iterator[Finding]:
    """What the compare-and-swaps keep true; a broken one means a bug, or that somebody wrote past Tarry."""
    broken = 0
    every = _rules(patient.tables)
    for rule, breaks in every.items():
        number, text = patient.jobs(breaks)
        if number:
            broken += 1
            yield Finding("rule", Level.ERROR, f"{text} against the rule: {rule}")
    if not broken:
        yield Finding("rules", Level.OK, f"{len(every)} hold for every job")


def _rules(tables: Tables) -> Mapping[str, ColumnElement[bool]]:
    job, event, spec = tables.job, tables.event, tables.spec
    over = job.c.outcome.is_not(None)
    is_done = job.c.phase == Phase.DONE.value
    later = exists().where(event.c.job == job.c.id, event.c.seq > job.c.event_seq)
    return {
        "polls and the permit are within max_polls": job.c.polls + job.c.reserved > job.c.max_polls,
        "counts are not negative": or_(job.c.polls < 0, job.c.reserved < 0, job.c.strikes < 0),
        "one poll at most is permitted": job.c.reserved > 1,
        "a job that is over has an end, and only that": over != job.c.finished_at.is_not(None),
        "a job that is over is done, and only that": over != is_done,
        "a job that is over has no owner, no permit and nothing to wake for": or_(
            *(over & held for held in (job.c.owner.is_not(None), job.c.wake.is_not(None), job.c.reserved != 0))
        ),
        "a permit is an owner's": (job.c.reserved != 0) & job.c.owner.is_(None),
        "an owner has a nonce": job.c.owner.is_not(None) & job.c.nonce.is_(None),
        "a job that is paused and held by nobody sleeps": (job.c.paused != 0) & job.c.wake.is_not(None),
        "no event has a number past the row's": later,
        "told is a number of an event": job.c.told > job.c.event_seq,
        "the spec is there": ~exists().where(spec.c.hash == job.c.spec),
    }


def strays(patient: Patient) -> Iterator[Finding]:
    """Events and deliveries of jobs that are gone."""
    job = patient.tables.job
    for name, table in (("events", patient.tables.event), ("deliveries", patient.tables.outbox)):
        stray = select(func.count()).select_from(table).where(~exists().where(job.c.id == table.c.job))
        number = patient.number(stray)
        if number:
            yield Finding("strays", Level.WARNING, f"{number} {name} of jobs that are not there: harmless, and a bug")


def damaged(patient: Patient) -> Iterator[Finding]:
    """Rows that hold what no Tarry wrote; of jobs that go on, the state and the spec as well."""
    number, keys = 0, list[Any]()
    for row in _rows(patient):
        try:
            _read(row)
        except CheckpointError:
            number += 1
            keys = [*keys, row.key][:_NAMED]
    if number:
        text = (
            f"{named(number, keys)} damaged, or written by a newer version, and left alone: `tarry show KEY` tells what"
        )
        yield Finding("damaged", Level.ERROR, text)
    else:
        yield Finding("damaged", Level.OK, "every row can be read")


def _rows(patient: Patient) -> Iterator[Any]:
    job, after = patient.tables.job, 0
    whole = whole_rows(job, patient.tables.spec).order_by(job.c.id).limit(_PAGE)
    while True:
        found = patient.connection.execute(whole.where(job.c.id > after)).all()
        yield from found
        if len(found) < _PAGE:
            return
        after = found[-1].id


def _read(columns: Any) -> None:
    row = job_row(columns)
    if row.outcome is None:
        state_of(row)
        decode_spec(row.spec)
