"""What is decided before SQLite is touched: the journal, the path, the prefix, the place, the kind of store."""

from __future__ import annotations

import sqlite3
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import cast

import pytest
from sqlalchemy import create_engine
from sqlalchemy.pool import StaticPool

from tarry.errors import StoreError, StoreUnavailable
from tarry.ports import Store
from tarry.store import MemoryStore, SqlStore, files, locks, open_store, sqlite
from tarry.store.compiled import COMPILED
from tarry.store.files import Identity, network_kind
from tarry.store.locks import FileLocks, NoLocks
from tarry.store.sqlite import journal_mode
from tarry.store.tables import Tables
from tests.contract.bench import START, held


@pytest.mark.parametrize(
    ("library", "mode"),
    [
        ((3, 40, 1), "persist"),
        ((3, 44, 5), "persist"),
        ((3, 44, 6), "wal"),
        ((3, 45, 0), "persist"),
        ((3, 50, 6), "persist"),
        ((3, 50, 7), "wal"),
        ((3, 51, 0), "persist"),
        ((3, 51, 2), "persist"),
        ((3, 51, 3), "wal"),
        ((3, 52, 0), "wal"),
        ((4, 0, 0), "wal"),
    ],
)
def test_the_write_ahead_log_needs_a_library_with_the_fix(library: tuple[int, ...], mode: str) -> None:
    """The WAL-reset race was fixed in 3.51.3, 3.50.7 and 3.44.6; everywhere else the rollback journal is used."""
    assert journal_mode(library, network=False) == mode
    assert journal_mode(library, network=True) == "persist"


def test_the_kind_of_store_follows_what_was_asked_for(tmp_path: Path) -> None:
    """Memory without a file, a file with one, a store as it is; anything else is refused."""
    assert isinstance(open_store("sqlite://"), MemoryStore)
    assert isinstance(open_store(f"sqlite:///{tmp_path}/jobs.db"), SqlStore)
    mine = cast("Store", MemoryStore())
    assert open_store(mine) is mine
    assert (open_store("sqlite://").blocking, open_store(f"sqlite:///{tmp_path}/jobs.db").blocking) == (False, True)
    with pytest.raises(StoreError, match="not int"):
        open_store(cast("Store", 7))


def test_a_shared_database_in_memory_is_refused() -> None:
    """An engine in memory cannot be reopened by its URL: jobs would be lost without a word."""
    engine = create_engine("sqlite://", poolclass=StaticPool)
    with pytest.raises(StoreError, match=r"use MemoryStore\(\)"):
        open_store(engine)


class Deaf:
    """A connection whose settings stay as they are."""

    def __init__(self, **settings: object) -> None:
        self.settings = settings

    def execute(self, pragma: str) -> Deaf:
        self.asked = pragma.removeprefix("PRAGMA ").partition("=")[0]
        return self

    def fetchone(self) -> tuple[object] | None:
        return (self.settings[self.asked],) if self.asked in self.settings else None


@pytest.mark.parametrize(
    ("settings", "kind"),
    [
        ({"journal_mode": "wal", "synchronous": 2}, StoreUnavailable),
        ({"journal_mode": "persist", "synchronous": 1}, StoreError),
    ],
)
def test_a_setting_that_does_not_take_is_refused(settings: dict[str, object], kind: type[StoreError]) -> None:
    """Durability is what the database says it does, not what it was asked for."""
    with pytest.raises(StoreError) as caught:
        sqlite._prepare_writer("persist", cast("sqlite3.Connection", Deaf(**settings)))
    assert type(caught.value) is kind


def test_a_library_that_is_too_old_is_refused(tmp_path: Path) -> None:
    """Before anything is touched, and with the version that would do."""
    with pytest.raises(StoreError, match=r"is 3\.32\.3: install one with 3\.33\.0 or newer"):
        sqlite.SqliteFile(tmp_path / "jobs.db", library=(3, 32, 3)).open()
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("prefix", ["", "1x", "Tarry_", "a-b", "a;drop", "x" * 32, "é"])
def test_a_prefix_is_plain(prefix: str) -> None:
    """It becomes part of table names: nothing that needs quoting."""
    with pytest.raises(StoreError, match="table prefix"):
        Tables(prefix)


def test_all_tables_carry_the_prefix() -> None:
    """So that they can live beside an application's own."""
    names = set(Tables("my_").metadata.tables)
    assert names == {"my_meta", "my_worker", "my_spec", "my_job", "my_event", "my_outbox"}


def test_what_one_store_compiled_the_next_one_uses() -> None:
    """A program with many stores, as tests are, works its SQL out once; under another prefix it is other SQL."""

    def sizes(prefix: str) -> int:
        store = MemoryStore(prefix=prefix)
        store.open(START)
        held(store)
        store.close()
        return len(COMPILED)

    known = sizes("first_")
    assert sizes("first_") == known
    assert sizes("second_") > known


MOUNTS = """\
22 1 0:20 / / rw - ext4 /dev/root rw
23 22 0:21 / /home rw,nosuid shared:1 - nfs4 server:/home rw
24 23 0:22 / /home/me/local rw - tmpfs tmpfs rw
25 22 0:23 / /homes rw - cifs //server/homes rw
"""


@pytest.mark.parametrize(
    ("path", "kind"),
    [
        ("/data/jobs.db", None),
        ("/home/jobs.db", "nfs4"),
        ("/home/me/local/jobs.db", None),
        ("/homes/jobs.db", "cifs"),
        ("/home2/jobs.db", None),
    ],
)
def test_a_network_file_system_is_recognised(tmp_path: Path, path: str, kind: str | None) -> None:
    """By the deepest mount that holds the path."""
    mounts = tmp_path / "mountinfo"
    mounts.write_text(MOUNTS)
    assert network_kind(Path(path), mounts) == kind
    assert network_kind(Path(path), tmp_path / "missing") is None


def test_files_are_told_apart(tmp_path: Path) -> None:
    """By identity, not by name or content."""
    one, two = tmp_path / "one", tmp_path / "two"
    files.create_private(one)
    files.create_private(two)
    assert Identity.of(one) != Identity.of(two)
    assert Identity.of(tmp_path / "three") is None
    before = Identity.of(one)
    files.create_private(one)
    files.check_same(one, before)


def test_without_locks_only_leases_tell(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Where the system has no such locks nobody is ever known to be gone."""
    assert isinstance(locks.locks_beside(tmp_path / "jobs.db"), FileLocks)
    monkeypatch.setattr(locks, "HAS_FLOCK", False)
    none = locks.locks_beside(tmp_path / "jobs.db")
    assert isinstance(none, NoLocks)
    assert (none.hold("a"), none.gone("a")) == (False, False)
    none.drop("a")
    none.close()


def test_a_lock_held_elsewhere_is_not_taken(tmp_path: Path) -> None:
    """Two holders of one uuid: the second has no lock to show for it, and leaves the first its own."""
    first, second = FileLocks(tmp_path / "w"), FileLocks(tmp_path / "w")
    assert (first.hold("a"), first.hold("a"), second.gone("a")) == (True, True, False)
    assert not second.hold("a")
    first.close()


def test_a_lock_that_cannot_be_looked_at_tells_nothing(tmp_path: Path) -> None:
    """A folder in its place, or no rights: the worker is left to its lease."""
    mine = FileLocks(tmp_path / "w")
    (tmp_path / "w" / "a.lock").mkdir(parents=True)
    assert not mine.gone("a")
    mine.drop("a")


def test_threads_that_share_a_store_hear_its_version(tmp_path: Path) -> None:
    """Each poller that was given the same store asks from a thread of its own, at any moment."""
    store = SqlStore(f"sqlite:///{tmp_path / 'jobs.db'}")
    store.open(0)
    interval = sys.getswitchinterval()
    sys.setswitchinterval(1e-5)
    try:
        with ThreadPoolExecutor(4) as threads:
            heard = set(threads.map(lambda _: store.version(), range(4_000)))
    finally:
        sys.setswitchinterval(interval)
        store.close()
    assert len(heard) == 1
