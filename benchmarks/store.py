"""What the store costs, in CPU time a row: `python benchmarks/store.py [waiting jobs]`.

Prints medians of five, in microseconds of the calling thread, for batches of several sizes on an SQLite
file of its own. With a number of waiting jobs, such as 1000000, those sleep beside the ones that are at work.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from statistics import median
from tempfile import TemporaryDirectory
from time import thread_time

from sqlalchemy import Integer, insert, literal, select, true

from tarry.ports import Checkpoint, Event, JobRow, NewJob
from tarry.store import SqlStore
from tarry.words import DAY, SECOND, Phase

SIZES = (1, 10, 100, 500)
RUNS = 5
NOW = 1_000 * DAY
STATE = '{"polls":1,"items":[' + ",".join(f'{{"at":{n}}}' for n in range(30)) + "]}"
TIMELINE = "[" + ",".join(f'[{n},"RUNNING",{n}000]' for n in range(12)) + "]"
CALLS = ("due", "claim", "reserve", "checkpoint", "with an event", "rows", "release")


def new_job(key: str, due: int = NOW) -> NewJob:
    """A job as the front door makes one."""
    return NewJob("default", key, key, "print", '{"poll":1}', {}, STATE, Phase.WAITING, NOW, due, None, None, SECOND)


def fill(store: SqlStore, jobs: int) -> None:
    """Copies of a job that is due much later, made by the database itself."""
    template, _ = store.add(new_job("asleep", NOW + DAY))
    job = store.tables.job
    numbers = select(literal(1, Integer).label("n")).cte("numbers", recursive=True)
    numbers = numbers.union_all(select(numbers.c.n + 1).where(numbers.c.n < jobs))
    others = [column for column in job.c if column.name not in {"id", "key"}]
    copies = select(literal("asleep-").concat(numbers.c.n), *others).where(job.c.id == template.id)
    copies = copies.select_from(job.join(numbers, true()))
    with store._database.write() as connection:  # noqa: SLF001 - jobs by the million are made past the store
        connection.execute(insert(job).from_select(["key", *(column.name for column in others)], copies))


def step(row: JobRow, steps: int, events: Sequence[Event] = ()) -> Checkpoint:
    """What a poll that saw nothing new writes, `steps` writes after the row was read."""
    grip = replace(row.grip, step=row.step + steps)
    return Checkpoint(grip, STATE, Phase.WAITING, row.polls + steps, NOW, NOW, timeline=TIMELINE, events=events)


def calls(store: SqlStore, worker: int, nonce: str, size: int) -> Iterator[Callable[[], object]]:
    """The way of `size` jobs through a round, one call of the store after the other."""
    found, _ = store.due("default", NOW, (0, 0), size)
    ids = [row.id for row in found]
    yield lambda: store.due("default", NOW, (0, 0), size)
    rows: list[JobRow] = []
    yield lambda: rows.extend(store.claim(worker, nonce, NOW, ids))
    grips = [row.grip for row in rows]
    yield lambda: store.reserve(grips)
    plain = [step(row, 1) for row in rows]
    yield lambda: store.checkpoint(plain)
    told = [step(row, 2, [Event("changed", NOW, {"from": "QUEUED", "to": "RUNNING"})]) for row in rows]
    yield lambda: store.checkpoint(told)
    yield lambda: store.rows(ids)
    last = [replace(grip, step=grip.step + 3) for grip in grips]
    yield lambda: store.release(last, NOW)


def microseconds(call: Callable[[], object]) -> float:
    """One call."""
    begun = thread_time()
    call()
    return (thread_time() - begun) * 1_000_000


def main(waiting: int) -> None:
    """One line a size; the first run of each prepares the statements and does not count."""
    with TemporaryDirectory() as folder:
        store = SqlStore(f"sqlite:///{Path(folder) / 'jobs.db'}")
        store.open(NOW)
        worker = store.register("bench", NOW, DAY)
        if waiting:
            fill(store, waiting)
        for number in range(max(SIZES)):
            store.add(new_job(f"job-{number}"))
        print(f"{'us a row':>10}{''.join(f'{name:>15}' for name in CALLS)}   ({waiting} jobs waiting)")
        for size in SIZES:
            taken = [
                [microseconds(call) / size for call in calls(store, worker, f"{size}-{run}", size)]
                for run in range(RUNS + 1)
            ]
            print(f"{size:10}{''.join(f'{median(column):15.1f}' for column in zip(*taken[1:], strict=True))}")
        store.close()


if __name__ == "__main__":
    main(int(sys.argv[1]) if len(sys.argv) > 1 else 0)
