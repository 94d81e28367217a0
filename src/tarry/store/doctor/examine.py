"""The examination: the settings of the database first, then its workers, then its jobs."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from sqlalchemy import Connection, select

from tarry.errors import StoreError
from tarry.store.database import Database
from tarry.store.doctor import file, jobs, rows, servers, workers
from tarry.store.doctor.findings import Check, Finding, Level, Patient
from tarry.store.migrations import STEPS, version
from tarry.store.sqlite import SqliteFile
from tarry.store.tables import Tables
from tarry.words import Instant

_OF_JOBS: tuple[Check, ...] = (
    workers.alive,
    jobs.overdue,
    jobs.asleep,
    jobs.quarantined,
    jobs.undelivered,
    jobs.kept,
    jobs.from_the_future,
)
_OF_ROWS: tuple[Check, ...] = (rows.rules, rows.strays, rows.damaged)


def examine(database: Database, tables: Tables, now: Instant) -> list[Finding]:
    """All findings; what cannot be looked into at all is one of them."""
    found: list[Finding] = []
    try:
        for finding in _findings(database, tables, now):
            found.append(finding)  # noqa: PERF402  # one by one, so that those before an error are kept
    except StoreError as error:
        found.append(Finding("database", Level.ERROR, str(error)))
    return found


def _findings(database: Database, tables: Tables, now: Instant) -> Iterator[Finding]:
    if isinstance(database, SqliteFile):
        yield from file.around(database)
    with _looking_into(database) as connection:
        there = now if database.clock is None else int(connection.scalar(select(database.clock)) or 0)
        patient = Patient(connection, tables, database.locks, there)
        if isinstance(database, SqliteFile):
            yield from file.settings(patient, database)
            yield from file.integrity(patient)
        if database.dialect in servers.CHECKS:
            yield from servers.CHECKS[database.dialect](patient)
        if database.clock is not None:
            yield servers.clocks(now, there)
        found, newest = version(connection, tables), max(STEPS)
        yield _schema(found, newest)
        if found == newest:
            for check in (*_OF_JOBS, *_OF_ROWS):
                yield from check(patient)


@contextmanager
def _looking_into(database: Database) -> Iterator[Connection]:
    """A connection that cannot write; what was closed is closed again."""
    if isinstance(database, SqliteFile):
        with database.look() as connection:
            yield connection
        return
    opened = database.open()
    try:
        with database.read() as connection:
            yield connection
    finally:
        if opened:
            database.close()


def _schema(found: int, newest: int) -> Finding:
    if found == newest:
        return Finding("schema", Level.OK, f"version {found}, current")
    if found > newest:
        text = f"version {found}, made by a newer Tarry: this one knows up to {newest}, and refuses it"
        return Finding("schema", Level.ERROR, text)
    if found == 0:
        return Finding("schema", Level.NOTE, "no tables yet: they are made at the first use")
    text = f"version {found}, brought to {newest} at the next use; the jobs were not looked at"
    return Finding("schema", Level.NOTE, text)
