"""What a database holds, for a person who asks: nothing is changed."""

from __future__ import annotations

from dataclasses import dataclass

from sqlalchemy import func, select

from tarry.store.migrations import STEPS, version
from tarry.store.sqlite import Database
from tarry.store.tables import Tables


@dataclass(frozen=True, slots=True)
class Inventory:
    """The schema's version there (0: no tables yet) and the newest known here; counts, None where the schemas differ.

    `live` are the jobs that are not over, `held` those of them that a worker holds, `workers` those that are alive
    as far as the database knows.
    """

    schema: int
    newest: int
    journal: str
    jobs: int | None = None
    live: int | None = None
    held: int | None = None
    workers: int | None = None


def inventory(database: Database, tables: Tables) -> Inventory:
    """Look into the database; `StoreError` when its tables belong to something else."""
    job, worker, newest = tables.job, tables.worker, max(STEPS)
    with database.read() as connection:
        found = version(connection, tables)
        journal = str(connection.exec_driver_sql("PRAGMA journal_mode").scalar())
        if found != newest:
            return Inventory(found, newest, journal)
        alive = select(func.count()).where(worker.c.dead == 0, worker.c.released == 0)
        return Inventory(
            schema=found,
            newest=newest,
            journal=journal,
            jobs=connection.scalar(select(func.count()).select_from(job)),
            live=connection.scalar(select(func.count()).where(job.c.outcome.is_(None))),
            held=connection.scalar(select(func.count()).where(job.c.owner.is_not(None))),
            workers=connection.scalar(alive),
        )
