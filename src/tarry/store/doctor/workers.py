"""Who works on the jobs, and whether anyone does."""

from __future__ import annotations

from collections.abc import Iterator

from sqlalchemy import func, select

from tarry.store.doctor.findings import Finding, Level, Patient
from tarry.store.locks import is_uuid


def alive(patient: Patient) -> Iterator[Finding]:
    """Workers that are alive; those that ended and still hold jobs; jobs of owners that are none."""
    living, ended = _sorted(patient)
    yield Finding("workers", Level.OK, f"{len(living)} alive")
    job = patient.tables.job
    number, text = patient.jobs(job.c.owner.is_not(None), job.c.owner.not_in(living))
    if number:
        when = "in a moment" if living else "when a worker runs: `tarry run`"
        yield Finding("held", Level.WARNING, f"{text} held by a worker that ended: freed {when}")
    elif ended:
        yield Finding(
            "ended", Level.NOTE, f"{len(ended)} ended without a word and held no jobs: cleared away by others"
        )


def _sorted(patient: Patient) -> tuple[list[int], list[int]]:
    worker = patient.tables.worker
    found = select(worker.c.id, worker.c.uuid, worker.c.guarded, worker.c.lease_until).where(
        worker.c.dead == 0, worker.c.released == 0
    )
    living, ended = list[int](), list[int]()
    for row in patient.connection.execute(found).all():
        is_gone = row.guarded == 1 and is_uuid(row.uuid) and patient.locks.gone(row.uuid)
        (ended if is_gone or row.lease_until <= patient.now else living).append(row.id)
    return living, ended


def are_alive(patient: Patient) -> bool:
    """Whether any worker is."""
    return bool(_sorted(patient)[0])


def newest_lease(patient: Patient) -> int:
    """When the last lease ends."""
    return patient.number(select(func.max(patient.tables.worker.c.lease_until)))
