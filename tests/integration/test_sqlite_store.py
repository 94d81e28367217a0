"""SQLite stores as such: what is on disk, under threads, when things go wrong."""

from __future__ import annotations

import sqlite3
import threading
import traceback
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from hashlib import sha256
from pathlib import Path

import pytest
from sqlalchemy import create_engine

from tarry.errors import StoreError, StoreUnavailable
from tarry.ports import JobRow
from tarry.store import MemoryStore, SqlStore, open_store
from tarry.store.sqlite import SqliteFile, journal_mode
from tests.contract.bench import BENCHES, START, TTL, Bench, grip, held, new_job, reread, sqlite_bench, write


@pytest.fixture
def database(tmp_path: Path) -> Path:
    return tmp_path / "jobs.db"


@pytest.fixture
def bench(tmp_path: Path) -> Iterator[Bench]:
    made = sqlite_bench(tmp_path)
    made.store.open(START)
    yield made
    made.close()


@pytest.fixture(params=["sqlite-rollback", "sqlite-wal"])
def any_journal(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Bench]:
    """A store with each journal, whatever this library would choose."""
    made = BENCHES[request.param](tmp_path)
    made.store.open(START)
    yield made
    made.close()


def pragma(store: SqlStore, name: str, side: str) -> object:
    """A setting as the store's own connection has it."""
    with getattr(store._database, side)() as connection:
        return connection.exec_driver_sql(f"PRAGMA {name}").scalar()


# Durability


def test_a_commit_is_on_disk(bench: Bench) -> None:
    """Full synchronisation on both kinds of connection; the journal is the safe one for this library."""
    assert [pragma(bench.store, "synchronous", side) for side in ("write", "read")] == [2, 2]
    assert pragma(bench.store, "journal_mode", "write") == journal_mode(sqlite3.sqlite_version_info, network=False)


@pytest.mark.parametrize("size", [None, 4096])
def test_a_file_keeps_the_pages_that_it_was_made_with(database: Path, size: int | None) -> None:
    """A new file has large ones; one that is there already is used as it is."""
    if size is not None:
        other = sqlite3.connect(database)
        other.execute(f"PRAGMA page_size={size}")
        other.execute("CREATE TABLE theirs (a)")
        other.close()
    store = SqlStore(f"sqlite:///{database}")
    store.open(START)
    assert pragma(store, "page_size", "write") == (size or 8192)
    store.close()


def test_what_stays_of_a_journal_is_bounded(bench: Bench) -> None:
    """It is written over, and a large transaction does not take its room for ever."""
    assert pragma(bench.store, "journal_size_limit", "write") == 8 << 20


def test_a_database_in_the_other_mode_is_brought_back(database: Path) -> None:
    """A file left in the write-ahead mode by another program is used in the mode that is safe here."""
    other = sqlite3.connect(database)
    other.execute("PRAGMA journal_mode=wal")
    other.execute("CREATE TABLE theirs (a)")
    other.close()
    store = SqlStore(f"sqlite:///{database}")
    store.open(START)
    assert pragma(store, "journal_mode", "write") == journal_mode(sqlite3.sqlite_version_info, network=False)
    store.close()


def test_a_mode_that_cannot_be_left_is_a_passing_fault(database: Path) -> None:
    """As long as another program works in a mode that is unsafe here, the store does not open."""
    if journal_mode(sqlite3.sqlite_version_info, network=False) == "wal":
        pytest.skip("this SQLite library is safe in every mode")
    other = sqlite3.connect(database, isolation_level=None)
    other.execute("PRAGMA journal_mode=wal")
    other.execute("CREATE TABLE theirs (a)")
    other.execute("BEGIN")
    other.execute("SELECT * FROM theirs").fetchall()
    store = SqlStore(f"sqlite:///{database}")
    with pytest.raises(StoreUnavailable):
        store.open(START)
    other.close()
    store.open(START)
    store.close()


def test_a_database_that_is_refused_is_not_kept_open(bench: Bench, database: Path) -> None:
    """Neither connections nor locks stay behind where `open` raised; a store that was open stays so."""
    bench.execute("UPDATE tarry_meta SET value = '99'")
    with pytest.raises(StoreError, match="version 99"):
        bench.store.open(START)
    assert bench.store.version() > 0
    refused = SqlStore(f"sqlite:///{database}")
    with pytest.raises(StoreError, match="version 99"):
        refused.open(START)
    with pytest.raises(StoreError, match="not open"):
        refused.version()


def test_readers_cannot_write(any_journal: Bench) -> None:
    """A read connection refuses a write, whatever code does with it."""
    with pytest.raises(StoreError, match=r"cannot be written.*SQLITE_READONLY"):  # noqa: SIM117 - the fault is inside
        with any_journal.store._database.read() as connection:
            connection.exec_driver_sql("DELETE FROM tarry_job")


def test_the_file_is_its_owners_alone(database: Path) -> None:
    """A database of ours, which may hold answers of a service, is not readable by others."""
    store = SqlStore(f"sqlite:///{database}")
    store.open(START)
    assert database.stat().st_mode & 0o777 == 0o600
    store.close()


# Threads


def test_threads_share_a_store(any_journal: Bench) -> None:
    """Eight threads, fifty checkpoints each: every one applied, once."""
    rows = [held(any_journal.store, f"job-{n}", max_polls=None) for n in range(8)]

    def work(row: JobRow) -> list[bool]:
        return [any_journal.store.checkpoint([write(grip(row, n), n + 1, max_polls=None)])[0] for n in range(50)]

    with ThreadPoolExecutor(8) as pool:
        assert all(all(applied) for applied in pool.map(work, rows))
    assert {(row.polls, row.step) for row in any_journal.store.rows([row.id for row in rows])} == {(50, 51)}


def test_a_race_for_a_job_has_one_winner(any_journal: Bench) -> None:
    """Four stores claim the same jobs at the same moment: each job has one owner, and none is left."""
    stores = [any_journal.store, *(any_journal.another() for _ in range(3))]
    workers = [store.register(f"w{n}", START, TTL) for n, store in enumerate(stores)]
    jobs = [any_journal.store.add(new_job(f"job-{n}"))[0].id for n in range(5)]
    together = threading.Barrier(4)

    def claim(n: int) -> list[int]:
        together.wait()
        return [row.id for row in stores[n].claim(workers[n], f"n{n}", START, jobs)]

    with ThreadPoolExecutor(4) as pool:
        claimed = [job for won in pool.map(claim, range(4)) for job in won]
    assert sorted(claimed) == jobs


def test_the_tables_are_made_once(database: Path) -> None:
    """Four stores open a new file at the same moment: one makes the tables, all find them."""
    stores = [SqlStore(f"sqlite:///{database}") for _ in range(4)]
    together = threading.Barrier(4)

    def open_one(store: SqlStore) -> None:
        together.wait()
        store.open(START)

    with ThreadPoolExecutor(4) as pool:
        list(pool.map(open_one, stores))
    assert stores[0].add(new_job())[0] == stores[3].find("default", "orders")
    for store in stores:
        store.close()


# Faults


def test_a_busy_database_is_a_passing_fault(any_journal: Bench, database: Path) -> None:
    """Another program that keeps the lock makes a call fail for now; afterwards it works."""
    row = held(any_journal.store)
    with any_journal.store._database.write() as connection:
        connection.exec_driver_sql("PRAGMA busy_timeout=0")
    other = sqlite3.connect(database, isolation_level=None)
    other.execute("BEGIN EXCLUSIVE")
    with pytest.raises(StoreUnavailable, match="SQLITE_BUSY"):
        any_journal.store.checkpoint([write(grip(row), 1)])
    other.execute("COMMIT")
    other.close()
    assert any_journal.store.checkpoint([write(grip(row), 1)]) == [True]


def test_a_full_disk_says_so_and_loses_nothing(any_journal: Bench) -> None:
    """What was acknowledged stays; what did not fit left no trace; with room again, all goes on."""
    row = held(any_journal.store)
    with any_journal.store._database.write() as connection:
        pages = connection.exec_driver_sql("PRAGMA page_count").scalar() or 0
        connection.exec_driver_sql(f"PRAGMA max_page_count={pages + 2}")
    big = write(grip(row), 1, output='"' + "x" * 100_000 + '"')
    with pytest.raises(StoreUnavailable, match=r"make room.*SQLITE_FULL"):
        any_journal.store.checkpoint([big])
    assert reread(any_journal.store, row) == row
    with any_journal.store._database.write() as connection:
        connection.exec_driver_sql("PRAGMA max_page_count=100000")
    assert any_journal.store.checkpoint([big]) == [True]


@pytest.mark.parametrize("replaced", [False, True])
def test_a_file_that_was_swapped_is_noticed(any_journal: Bench, database: Path, replaced: bool) -> None:
    """SQLite would write on into the deleted file and say that all is well; the store says that it is not."""
    row = held(any_journal.store)
    database.rename(database.with_name("old.db"))
    if replaced:
        database.touch()
    for use in (
        lambda: any_journal.store.checkpoint([write(grip(row), 1)]),
        lambda: any_journal.store.find("default", "orders"),
        lambda: any_journal.store.open(START),
    ):
        with pytest.raises(StoreError, match="deleted or replaced while in use"):
            use()


def test_a_file_swapped_during_a_write_takes_the_write_with_it(any_journal: Bench, database: Path) -> None:
    """Looked at again before the commit: nothing is acknowledged that went into a file nobody will find."""
    moved = database.with_name("old.db")

    def write_while_it_is_moved() -> None:
        with any_journal.store._database.write() as connection:
            connection.exec_driver_sql("DELETE FROM tarry_meta")
            database.rename(moved)

    with pytest.raises(StoreError, match="deleted or replaced"):
        write_while_it_is_moved()
    moved.rename(database)
    any_journal.store.open(START)


def test_what_is_no_database_is_left_as_it_is(database: Path) -> None:
    """A file of something else is refused, untouched."""
    database.write_bytes(b"These are notes, not tables.\n" * 200)
    before = sha256(database.read_bytes()).digest()
    with pytest.raises(StoreError, match=r"no SQLite database.*SQLITE_NOTADB"):
        SqlStore(f"sqlite:///{database}").open(START)
    assert sha256(database.read_bytes()).digest() == before


def test_a_damaged_database_is_refused(bench: Bench, database: Path) -> None:
    """A page of garbage where a table was is reported as damage, not as a passing fault."""
    held(bench.store)
    bench.store.close()
    content = bytearray(database.read_bytes())
    content[100:4096] = b"\xff" * 3996
    database.write_bytes(content)
    with pytest.raises(StoreError, match=r"damaged.*SQLITE_CORRUPT"):
        bench.store.open(START)
    assert database.read_bytes() == content


def test_a_value_does_not_show_in_an_error(bench: Bench) -> None:
    """Neither the message nor the trace repeats what was to be stored."""
    secret = "s3cr3t-in-a-body"
    with pytest.raises(StoreError) as caught:
        bench.store.add(new_job(state=secret, due=2**70))
    assert secret not in "".join(traceback.format_exception(caught.value))


def test_a_store_that_is_not_open_says_so(database: Path) -> None:
    """Before `open` and after `close` there is a clear refusal, and `open` helps."""
    store = SqlStore(f"sqlite:///{database}")
    with pytest.raises(StoreError, match="not open"):
        store.find("default", "orders")
    store.close()
    store.open(START)
    store.close()
    store.close()
    with pytest.raises(StoreError, match="not open"):
        store.add(new_job())


# Opening


def test_a_missing_folder_is_named(tmp_path: Path) -> None:
    """The path is wrong, and the message says which part of it."""
    with pytest.raises(StoreError, match=r"the folder .*/nowhere does not exist"):
        SqlStore(f"sqlite:///{tmp_path}/nowhere/jobs.db").open(START)


def test_a_folder_is_no_database(tmp_path: Path) -> None:
    """A path that is a folder is said to be one."""
    with pytest.raises(StoreError, match="is a folder: name a file in it"):
        SqlStore(f"sqlite:///{tmp_path}").open(START)


def test_an_engine_is_taken_by_its_file(database: Path) -> None:
    """An engine of the application names the database; the store's own connections do the work."""
    engine = create_engine(f"sqlite:///{database}")
    store = open_store(engine)
    store.open(START)
    row, _ = store.add(new_job())
    store.close()
    with engine.connect() as connection:
        assert connection.exec_driver_sql("SELECT key FROM tarry_job").scalar() == row.key
    engine.dispose()


def test_a_link_and_its_target_are_one_database(tmp_path: Path) -> None:
    """Workers that came by different names share the locks, and so see each other alive."""
    target = SqlStore(f"sqlite:///{tmp_path / 'jobs.db'}")
    target.open(START)
    (tmp_path / "link.db").symlink_to("jobs.db")
    link = SqlStore(f"sqlite:///{tmp_path / 'link.db'}")
    link.open(START)
    held(target, uuid="first")
    assert link.bury(link.register("second", START, TTL), START) == 0
    target.close()
    link.close()


def test_prefixes_keep_stores_apart(database: Path) -> None:
    """Two sets of tables in one file know nothing of each other, nor of the application's own."""
    one, two = (SqlStore(f"sqlite:///{database}", prefix=prefix) for prefix in ("one_", "two_"))
    one.open(START)
    two.open(START)
    one.add(new_job())
    assert two.find("default", "orders") is None
    one.close()
    two.close()


def test_jobs_in_memory_live_as_long_as_their_store() -> None:
    """Closed and opened again, they are there; another store knows none of them."""
    store = MemoryStore()
    store.open(START)
    row, _ = store.add(new_job())
    store.close()
    store.open(START)
    assert store.find("default", "orders") == row
    other = MemoryStore()
    other.open(START)
    assert other.find("default", "orders") is None


def test_threads_share_a_store_in_memory() -> None:
    """One connection, used by one at a time."""
    store = MemoryStore()
    store.open(START)
    with ThreadPoolExecutor(4) as pool:
        rows = list(pool.map(lambda n: store.add(replace(new_job(), key=f"{n}"))[0], range(40)))
    assert len({row.id for row in rows}) == 40


def test_a_network_file_system_is_warned_of(database: Path, caplog: pytest.LogCaptureFixture) -> None:
    """Locks over a network may not hold: said once, when the store is opened, and the write-ahead log is not used."""
    store = SqlStore(SqliteFile(database, network=lambda _path: "nfs4"))
    store.open(START)
    assert "network file system (nfs4)" in caplog.text
    assert pragma(store, "journal_mode", "write") == "persist"
    store.close()
