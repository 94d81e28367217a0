"""PostgreSQL and MariaDB as they are in production: their own clock, other processes, connections that break."""

from __future__ import annotations

import os
import threading
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest
from sqlalchemy import URL, create_engine, event, insert, update
from sqlalchemy.pool import NullPool

from tarry.errors import StoreError, StoreUnavailable
from tarry.ports import NewJob
from tarry.store import SqlStore, rows
from tarry.store.journal import add_spec
from tarry.words import HOUR, SECOND
from tests.acceptance.servers import Missing, database_of, emptied, mariadb_url, postgres_url, schema_of
from tests.contract.bench import START, TTL, Bench, ending, grip, held, new_job, reread, write

YEAR = 365 * 24 * HOUR


@pytest.fixture(params=["postgres", "mariadb"])
def server(request: pytest.FixtureRequest) -> URL:
    """Where each kind of server has room for this process's tables."""
    try:
        if request.param == "mariadb":
            return database_of(mariadb_url())
        # Under a name of their own, by which its connections can be told from those of whoever else tests there.
        return schema_of(postgres_url()).update_query_dict({"application_name": f"tarry-{os.getpid()}"})
    except Missing as missing:
        pytest.skip(str(missing))


@pytest.fixture
def opener(server: URL) -> Iterator[Callable[[], SqlStore]]:
    """Makes stores on the same empty tables, each like one of another process."""
    opened: list[SqlStore] = []

    def make() -> SqlStore:
        store = SqlStore(server)
        opened.append(store)
        store.open(START)
        return store

    emptied(first := SqlStore(server))
    opened.append(first)
    yield make
    for store in opened:
        store.close()


@pytest.fixture
def store(opener: Callable[[], SqlStore]) -> SqlStore:
    """One of them."""
    return opener()


def at_once(*calls: Callable[[], Any]) -> list[Any]:
    """What each gives, all begun at the same moment."""
    barrier = threading.Barrier(len(calls))

    def begun(call: Callable[[], Any]) -> Any:
        barrier.wait()
        return call()

    with ThreadPoolExecutor(len(calls)) as pool:
        return list(pool.map(begun, calls))


def expire(store: SqlStore, worker: int) -> None:
    """Let the lease of a worker be over by the server's clock, since a second ago."""
    table, clock = store.tables.worker, store._database.clock
    assert clock is not None
    with store._database.write() as connection:
        connection.execute(update(table).where(table.c.id == worker).values(lease_until=clock - SECOND))


def test_leases_are_kept_by_the_servers_clock(store: SqlStore, opener: Callable[[], SqlStore]) -> None:
    """A process whose own clock is years ahead declares nobody dead; what is due is kept in its own time."""
    row = held(store)
    other, ahead = opener(), START + YEAR
    undertaker = other.register("undertaker", ahead, TTL)
    assert other.bury(undertaker, ahead) == 0
    assert row.owner is not None
    assert store.renew(row.owner, START, TTL)
    assert store.reserve([grip(row)]) == [True]
    expire(store, row.owner)
    assert other.bury(undertaker, ahead) == 1
    after = reread(store, row)
    assert (after.owner, after.polls) == (None, 1)
    # What ended a second ago in the server's time ended a second ago in the caller's.
    assert after.polled_at is not None
    assert ahead - 60 * SECOND < after.polled_at <= ahead - SECOND


def test_a_key_is_created_once_by_many_at_once(opener: Callable[[], SqlStore]) -> None:
    """Each gets the same job; one of them is told that it made it."""
    stores = [opener() for _ in range(3)]
    for round_ in range(5):
        jobs = [new_job(f"key-{round_}", token=f"token-{n}", spec=f'{{"poll":{round_}}}') for n in range(len(stores))]

        def add(store: SqlStore, job: NewJob) -> Callable[[], Any]:
            return lambda: store.add(job)

        answers = at_once(*(add(store, job) for store, job in zip(stores, jobs, strict=True)))
        assert len({row.id for row, _ in answers}) == 1
        assert [created for _, created in answers].count(True) == 1


def test_tables_are_made_once_by_many_at_once(server: URL) -> None:
    """Processes that start together find what the quickest made; none fails."""
    stores = [SqlStore(server, prefix="started_") for _ in range(4)]
    try:
        at_once(*(lambda store=store: store.open(START) for store in stores))
        assert [store.inventory().jobs for store in stores] == [0] * 4
    finally:
        with stores[0]._database.write() as connection:
            stores[0].tables.metadata.drop_all(connection)
        for store in stores:
            store.close()


def test_who_claims_is_not_declared_dead_meanwhile(store: SqlStore, opener: Callable[[], SqlStore]) -> None:
    """A burial waits for a claim under way, and frees what it took: no job is left with an owner that is gone."""
    worker = store.register("first", START, TTL)
    row, _ = store.add(new_job())
    expire(store, worker)
    other = opener()
    undertaker = other.register("undertaker", START, TTL)
    with ThreadPoolExecutor(1) as pool:
        with store._database.write() as connection:
            assert store._workers.is_alive(connection, worker)
            burial = pool.submit(other.bury, undertaker, START)
            assert [taken.id for taken in store._claim(connection, worker, "n1", [row.id], None)] == [row.id]
            assert not burial.done()
        assert burial.result() == 1
    assert reread(store, row).owner is None
    assert store.claim(worker, "n2", START, [row.id]) == []


def test_two_claims_at_once_share_without_waiting(store: SqlStore, opener: Callable[[], SqlStore]) -> None:
    """What one worker is just taking is passed by, and nothing is taken twice."""
    other = opener()
    first, second = store.register("first", START, TTL), other.register("second", START, TTL)
    # MariaDB locks all of a table that is so small that it reads the whole of it.
    bench = Bench(store, opener)
    one, two, *_ = bench.multiply(store.add(new_job())[0], 300)
    if store._database.dialect == "mysql":
        bench.execute("ANALYZE TABLE tarry_job")
    with store._database.write() as connection:
        assert [row.id for row in store._claim(connection, first, "n1", [one], None)] == [one]
        assert [row.id for row in other.claim(second, "n2", START, [one, two])] == [two]
    assert [row.owner for row in store.rows([one, two])] == [first, second]


def test_a_spec_in_use_is_not_forgotten(store: SqlStore, opener: Callable[[], SqlStore]) -> None:
    """A job that is being added keeps the spec that the last job of its kind takes along when it is pruned."""
    done = held(store)
    assert store.checkpoint([ending(grip(done))]) == [True]
    other = opener()
    with ThreadPoolExecutor(1) as pool:
        with store._database.write() as connection:
            add_spec(connection, store._sql, new_job().spec)
            pruning = pool.submit(other.prune, "default", START + TTL, (0, 0), 10)
            connection.execute(store._sql.add_job, rows.new_job(new_job("next")))
        assert pruning.result()[0] == 1
    found = store.find("default", "next")
    assert found is not None
    assert found.spec == new_job().spec


def kill_connections(server: URL) -> None:
    """As an admin, a restart or a firewall does."""
    engine = create_engine(server, poolclass=NullPool)
    with engine.connect().execution_options(isolation_level="AUTOCOMMIT") as connection:
        if server.get_backend_name() == "postgresql":
            others = f"application_name = '{server.query['application_name']}' AND pid <> pg_backend_pid()"
            connection.exec_driver_sql(f"SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE {others}")
            return
        found = connection.exec_driver_sql(
            f"SELECT id FROM information_schema.processlist WHERE db = '{server.database}' AND id <> connection_id()"
        )
        for number in found.scalars().all():
            connection.exec_driver_sql(f"KILL {number}")


def test_a_connection_that_breaks_is_a_passing_fault(store: SqlStore, server: URL) -> None:
    """Between two units nobody notices; within one, nothing is written, and the same call works the next time."""
    row = held(store)
    kill_connections(server)
    assert store.reserve([grip(row)]) == [True]

    def write_half() -> None:
        with store._database.write() as connection:
            connection.execute(insert(store.tables.meta).values(name="half", value="way"))
            kill_connections(server)
            connection.execute(insert(store.tables.meta).values(name="other", value="half"))

    with pytest.raises(StoreUnavailable):
        write_half()
    assert store.checkpoint([write(grip(row, 1), 1)]) == [True]
    with store._database.read() as connection:
        assert [name for (name,) in connection.exec_driver_sql("SELECT name FROM tarry_meta")] == ["schema"]


def test_a_lock_is_not_waited_for_for_ever(store: SqlStore, opener: Callable[[], SqlStore]) -> None:
    """Held by another for long, it ends the unit as a passing fault."""
    row = held(store)
    other = opener()

    def impatient(connection: Any) -> None:
        is_postgres = connection.dialect.name == "postgresql"
        connection.exec_driver_sql(
            "SET LOCAL lock_timeout = '50ms'" if is_postgres else "SET SESSION innodb_lock_wait_timeout = 1"
        )

    with store._database.write() as connection:
        connection.execute(update(store.tables.job).values(cmd=7))
        engine = other._database._opened.writer  # type: ignore[attr-defined]  # a server's
        event.listen(engine, "begin", impatient)
        with pytest.raises(StoreUnavailable):
            other.checkpoint([write(grip(row), 1)])


def test_a_server_that_is_not_there_is_a_passing_fault(server: URL) -> None:
    """Nothing is said of the password, and nothing stays behind."""
    url = server.set(port=1, password="s3cr3t")
    with pytest.raises(StoreUnavailable) as caught:
        SqlStore(url).open(START)
    assert "s3cr3t" not in str(caught.value)


def test_a_database_that_is_not_there_says_so(server: URL) -> None:
    """As far as the server lets it be told."""
    with pytest.raises(StoreError, match="database"):
        SqlStore(server.set(database="nowhere")).open(START)


def test_a_store_tells_what_keeps_it(store: SqlStore) -> None:
    """With its version, for whoever reports a bug."""
    assert store.inventory().engine.startswith(("PostgreSQL 1", "1"))
