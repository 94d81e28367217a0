"""What a database holds, for a person who asks: nothing is changed."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass

from sqlalchemy import Connection, func, select

from tarry.store.database import Database, Dialect
from tarry.store.migrations import STEPS, version
from tarry.store.tables import Tables


@dataclass(frozen=True, slots=True)
class Inventory:
    """The schema's version there (0: no tables yet) and the newest known here; counts, None where the schemas differ.

    `live` are the jobs that are not over, `held` those of them that a worker holds, `workers` those that are alive
    as far as the database knows. `engine` is what keeps it, with its version.
    """

    schema: int
    newest: int
    engine: str
    jobs: int | None = None
    live: int | None = None
    held: int | None = None
    workers: int | None = None


def inventory(database: Database, tables: Tables) -> Inventory:
    """Look into the database; `StoreError` when its tables belong to something else."""
    job, worker, newest = tables.job, tables.worker, max(STEPS)
    with database.read() as connection:
        found = version(connection, tables)
        engine = _ENGINES[database.dialect](connection)
        if found != newest:
            return Inventory(found, newest, engine)
        alive = select(func.count()).where(worker.c.dead == 0, worker.c.released == 0)
        return Inventory(
            schema=found,
            newest=newest,
            engine=engine,
            jobs=connection.scalar(select(func.count()).select_from(job)),
            live=connection.scalar(select(func.count()).where(job.c.outcome.is_(None))),
            held=connection.scalar(select(func.count()).where(job.c.owner.is_not(None))),
            workers=connection.scalar(alive),
        )


def _sqlite(connection: Connection) -> str:
    version = connection.exec_driver_sql("SELECT sqlite_version()").scalar()
    return f"SQLite {version}, journal {connection.exec_driver_sql('PRAGMA journal_mode').scalar()}"


def _postgres(connection: Connection) -> str:
    return f"PostgreSQL {connection.exec_driver_sql('SHOW server_version').scalar()}"


def _mariadb(connection: Connection) -> str:
    version = str(connection.exec_driver_sql("SELECT version()").scalar())
    return version if "MariaDB" in version else f"MySQL {version}"


_ENGINES: Mapping[Dialect, Callable[[Connection], str]] = {
    "sqlite": _sqlite,
    "postgresql": _postgres,
    "mysql": _mariadb,
}
