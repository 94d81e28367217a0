"""What the store contract runs on: each kind of store, and the words to speak to it."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import pytest
from sqlalchemy import Connection, event, insert, select, text

from tarry.ports import Checkpoint, Event, Grip, JobRow, NewJob
from tarry.store import MemoryStore, SqlStore
from tarry.store.batch import Batch
from tarry.store.mariadb import MariaDb
from tarry.store.postgres import Postgres
from tarry.store.rows import spec_hash
from tarry.store.sqlite import SqliteFile
from tarry.words import SECOND, Instant, Outcome, Phase
from tests.acceptance.servers import Missing, database_of, emptied, mariadb_url, postgres_url, schema_of

START: Instant = 1_000 * SECOND
TTL = 30 * SECOND
FLOOR = 2 * SECOND

# Only SQLite takes any value for any column.
_UNTYPED = re.compile(r"x'[0-9a-f]+'|= 1\.5|= 'many'|\b(polls|floor|event_seq|step|at|lease_until) = '")


@dataclass
class Bench:
    """One open store, and the way to a second one on the same jobs."""

    store: SqlStore
    opener: Callable[[], SqlStore]
    opened: list[SqlStore] = field(default_factory=list)
    is_server: bool = False
    """Strict about what a column holds, and shared with others, whose commits are seen as well."""

    def another(self) -> SqlStore:
        """A second store on the same jobs; where there can be none, the same."""
        other = self.opener()
        other.open(START)
        self.opened.append(other)
        return other

    def close(self) -> None:
        """Close all stores."""
        for store in [self.store, *self.opened]:
            store.close()

    def execute(self, statement: str) -> None:
        """Write past the store, as a bug or a person with a browser would; skip the test where the types forbid it."""
        if self.is_server and _UNTYPED.search(statement):
            pytest.skip("this database refuses such a value by itself")
        with self.store._database.write() as connection:
            connection.exec_driver_sql(statement)

    def damage(self, change: str, key: str = "orders") -> None:
        """Change the columns of one job past the store."""
        job = self.store.tables.job
        with self.store._database.read() as connection:
            (number,) = connection.scalars(select(job.c.id).where(job.c.key == key))
        self.execute(f"UPDATE tarry_job SET {change} WHERE id = {number}")

    def batch_plan(self, batch: Batch, rows: Sequence[tuple[Any, ...]]) -> str:
        """How the database would go about the statement for rows of full length."""
        form = batch.forms[len(rows[0])]
        with self.store._database.write() as connection:
            words = self._analyzed(connection)
            size, values = form._parameters(connection.dialect, rows)
            found = connection.exec_driver_sql(f"{words} {form._text(connection.dialect, size)}", values)
            return " | ".join(str(tuple(row)) for row in found)

    def _analyzed(self, connection: Connection) -> str:
        """Have the database look at its tables; the words that ask for a plan."""
        connection.exec_driver_sql("ANALYZE TABLE tarry_job" if connection.dialect.name == "mysql" else "ANALYZE")
        return "EXPLAIN QUERY PLAN" if connection.dialect.name == "sqlite" else "EXPLAIN"

    def plan(self, statement: Any, params: dict[str, Any]) -> str:
        """How the database would go about it, some hundred rows being there."""

        def explained(_connection: Any, _cursor: Any, asked: str, given: Any, *_: Any) -> tuple[str, Any]:
            return f"{words} {asked}", given

        with self.store._database.write() as connection:
            words = self._analyzed(connection)
            event.listen(connection, "before_cursor_execute", explained, retval=True)
            # A statement that was compiled before has columns that an explanation has not.
            found = connection.execute(statement, params, execution_options={"compiled_cache": None})
            return " | ".join(str(tuple(row)) for row in found)

    def multiply(self, row: JobRow, times: int) -> list[int]:
        """Copies of a job under other keys, in one transaction; the ids of all."""
        job = self.store.tables.job
        names = [name for name in (column.name for column in job.c) if name not in {"id", "key", "labels", "spec"}]
        values = {name: getattr(row, name) for name in names} | {"labels": "{}", "spec": spec_hash(row.spec)}
        with self.store._database.write() as connection:
            connection.execute(insert(job), [values | {"key": f"copy-{n}"} for n in range(times)])
            return list(connection.scalars(select(job.c.id).order_by(job.c.id)))

    def count(self, table: str) -> int:
        """How many rows the table has."""
        with self.store._database.read() as connection:
            return int(connection.scalar(text(f"SELECT count(*) FROM {table}")) or 0)


def memory_bench(_folder: Path) -> Bench:
    """Jobs in memory: one store is all there is."""
    store = MemoryStore()
    return Bench(store, lambda: store)


def sqlite_bench(folder: Path) -> Bench:
    """Jobs in a file, with the journal that is safe with this SQLite library: any number of stores."""
    url = f"sqlite:///{folder / 'jobs.db'}"
    return Bench(SqlStore(url), lambda: SqlStore(url))


def sqlite_as_bench(library: tuple[int, ...]) -> Callable[[Path], Bench]:
    """Jobs in a file, with the journal for this version of the SQLite library."""

    def bench(folder: Path) -> Bench:
        def opener() -> SqlStore:
            return SqlStore(SqliteFile(folder / "jobs.db", library=library))

        return Bench(opener(), opener)

    return bench


def postgres_bench(_folder: Path) -> Bench:
    """Jobs in PostgreSQL, in a schema of this process of the run."""
    url = schema_of(postgres_url())
    return server_bench(lambda: Postgres(url, clock=None))


def mariadb_bench(_folder: Path) -> Bench:
    """Jobs in MariaDB, in a database of this process of the run."""
    try:
        url = database_of(mariadb_url())
    except Missing as missing:
        pytest.skip(str(missing))
    return server_bench(lambda: MariaDb(url, clock=None))


def server_bench(database: Callable[[], Postgres | MariaDb]) -> Bench:
    """Jobs in a database that the next test uses, too: this one begins with empty tables."""
    store = SqlStore(database())
    emptied(store)
    return Bench(store, lambda: SqlStore(database()), is_server=True)


BENCHES: dict[str, Callable[[Path], Bench]] = {
    "memory": memory_bench,
    "sqlite-rollback": sqlite_as_bench((3, 40, 1)),
    "sqlite-wal": sqlite_as_bench((3, 51, 3)),
    "postgres": postgres_bench,
    "mariadb": mariadb_bench,
}
"""Add a store here and it has to pass the whole contract."""


def new_job(key: str = "orders", **changes: Any) -> NewJob:
    """A job to create, due at once, with at most 3 polls."""
    job = NewJob(
        namespace="default",
        key=key,
        token=f"token-{key}",
        fingerprint="print",
        spec='{"poll":1}',
        labels={},
        state='{"polls":0}',
        phase=Phase.WAITING,
        created_at=START,
        due=START,
        deadline=None,
        max_polls=3,
        floor=FLOOR,
    )
    return replace(job, **changes)


def grip(row: JobRow, steps: int = 0) -> Grip:
    """The proof of who claimed this row, `steps` writes later."""
    assert row.nonce is not None
    return Grip(row.id, row.fence, row.nonce, row.step + steps, row.cmd)


def write(of: Grip, polls: int = 0, **changes: Any) -> Checkpoint:
    """A checkpoint of a job that goes on, due in 10 s."""
    checkpoint = Checkpoint(
        grip=of,
        state=f'{{"polls":{polls}}}',
        phase=Phase.WAITING,
        polls=polls,
        polled_at=START if polls else None,
        due=START + 10 * SECOND,
        max_polls=3,
    )
    return replace(checkpoint, **changes)


def ending(of: Grip, polls: int = 1, outcome: Outcome = Outcome.SUCCEEDED, **changes: Any) -> Checkpoint:
    """A checkpoint that ends the job."""
    return write(of, polls, phase=Phase.DONE, due=None, outcome=outcome, finished_at=START + SECOND, **changes)


def told(kind: str, **data: Any) -> Event:
    """An event at the start."""
    return Event(kind, START, data)


def held(store: SqlStore, key: str = "orders", *, uuid: str = "first", nonce: str = "n1", **changes: Any) -> JobRow:
    """A new job, claimed by a worker with this uuid."""
    worker = store.register(uuid, START, TTL)
    row, _ = store.add(new_job(key, **changes))
    (claimed,) = store.claim(worker, nonce, START, [row.id])
    return claimed


def reread(store: SqlStore, row: JobRow) -> JobRow:
    """The row as it is now."""
    (found,) = store.rows([row.id])
    return found
