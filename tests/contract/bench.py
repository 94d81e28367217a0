"""What the store contract runs on: each kind of store, and the words to speak to it."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from sqlalchemy import insert, select, text

from tarry.ports import Checkpoint, Event, Grip, JobRow, NewJob
from tarry.store import MemoryStore, SqlStore
from tarry.store.rows import spec_hash
from tarry.store.sqlite import SqliteFile
from tarry.words import SECOND, Instant, Outcome, Phase

START: Instant = 1_000 * SECOND
TTL = 30 * SECOND
FLOOR = 2 * SECOND


@dataclass
class Bench:
    """One open store, and the way to a second one on the same jobs."""

    store: SqlStore
    opener: Callable[[], SqlStore]
    opened: list[SqlStore] = field(default_factory=list)

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
        """Write past the store, as a bug or a person with a browser would."""
        with self.store._database.write() as connection:
            connection.exec_driver_sql(statement)

    def damage(self, change: str, key: str = "orders") -> None:
        """Change the columns of one job past the store."""
        self.execute(f"UPDATE tarry_job SET {change} WHERE key = '{key}'")

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


BENCHES: dict[str, Callable[[Path], Bench]] = {
    "memory": memory_bench,
    "sqlite-rollback": sqlite_as_bench((3, 40, 1)),
    "sqlite-wal": sqlite_as_bench((3, 51, 3)),
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
