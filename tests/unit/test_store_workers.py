"""Burials that meet a change between the look and the write: as servers, not SQLite, would have it."""

from __future__ import annotations

from sqlalchemy import select

from tarry.store import MemoryStore
from tests.contract.bench import START, TTL, grip, held, reread, write

LATER = START + TTL


def test_a_lease_renewed_at_the_last_moment_is_respected() -> None:
    """Found late, but alive again when it comes to the write: nobody is declared dead."""
    store = MemoryStore()
    store.open(START)
    worker = store.register("first", START, TTL)
    workers = store._workers
    with store._database.read() as connection:
        suspects = connection.execute(workers._others, {"p_id": 0}).mappings().all()
    store.renew(worker, LATER, TTL)
    assert workers._declare_dead(suspects, [], LATER) == []
    assert store.renew(worker, LATER, TTL)


def test_a_row_that_moved_on_is_not_freed() -> None:
    """A checkpoint between the look and the write makes the write miss: no count, no event."""
    store = MemoryStore()
    store.open(START)
    row = held(store)
    job = store.tables.job
    seen = select(job.c.id, job.c.owner, job.c.fence, job.c.step, job.c.cmd, job.c.polls, job.c.reserved)
    seen = seen.add_columns(job.c.max_polls, job.c.polled_at, job.c.due, job.c.floor, job.c.strikes)
    seen = seen.add_columns(job.c.paused, job.c.alone)
    with store._database.write() as connection:
        (stale,) = connection.execute(seen).mappings().all()
    store.checkpoint([write(grip(row), 1)])
    before = reread(store, row)
    with store._database.write() as connection:
        assert not store._workers._free_one(connection, stale, LATER, 0)
    assert reread(store, row) == before
    assert store.events("default", row.key, (0, 0), 9) == []
