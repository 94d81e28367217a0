"""SQLite as a database for jobs: transactions that are ones, and commits that are on disk.

Left alone, the driver begins no transaction before a SELECT, and begins one
that cannot wait for a lock it needs later. So the driver is told to begin none, and
writes are an explicit BEGIN IMMEDIATE on the one write connection of the store. Reads
have connections of their own that cannot write.

`synchronous=FULL` makes a commit mean "on disk". The write-ahead log is used
where the SQLite library is free of the WAL-reset race, which can corrupt a database;
elsewhere the rollback journal is, whose file stays: writing over what is there costs less than making it anew.
Both settings are read back on every connection.
"""

from __future__ import annotations

import logging
import os
import sqlite3
import threading
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager, nullcontext
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any, cast
from weakref import finalize

from sqlalchemy import URL, ColumnElement, Connection, Engine, create_engine, event
from sqlalchemy.pool import NullPool, QueuePool, StaticPool

from tarry.errors import StoreError, StoreUnavailable
from tarry.store.compiled import COMPILED
from tarry.store.database import Dialect, Silent
from tarry.store.faults import translated
from tarry.store.files import Identity, check_same, create_private, network_kind
from tarry.store.locks import Locks, NoLocks, locks_beside

log = logging.getLogger("tarry.store")

BUSY_SECONDS = 10
_POOL_SECONDS = 30
_READERS = 4
_OLDEST = (3, 33, 0)
_PAGE_BYTES = 8192
"""Of a new file: a page is written as a whole, and three jobs of a usual size share one where 4 KiB hold a single one."""

_JOURNAL_BYTES = 8 << 20
"""What is left of a rollback journal after its commit; the next one is written over it."""


@dataclass(frozen=True, slots=True)
class _Opened:
    """What `open` found and made, in which process."""

    pid: int
    identity: Identity | None
    writer: Engine
    reader: Engine
    watcher: sqlite3.Connection


class SqliteFile(Silent):
    """One SQLite file. `library` (its version) and `network` (what kind holds a path) decide on the journal."""

    dialect: Dialect = "sqlite"
    blocking = True
    clock: ColumnElement[int] | None = None

    def __init__(
        self,
        path: Path,
        *,
        library: tuple[int, ...] = sqlite3.sqlite_version_info,
        network: Callable[[Path], str | None] = network_kind,
    ) -> None:
        self.path = Path(os.path.realpath(path))
        self.locks: Locks = locks_beside(self.path)
        self._library = library
        self._network_kind = network
        self._opened: _Opened | None = None
        self._watching = threading.Lock()

    @property
    def network(self) -> str | None:
        """The kind of network file system that holds the file; None when local, or not to be known."""
        return self._network_kind(self.path)

    @property
    def journal(self) -> str:
        """The journal that is used from `open` on."""
        return journal_mode(self._library, network=self.network is not None)

    def open(self) -> bool:
        """Make the file where there is none, connect, and check the settings that durability rests on."""
        if self._opened is not None:
            return False
        check_library(self._library)
        with translated():
            create_private(self.path)
            self._warn()
            mode = self.journal
            identity = Identity.of(self.path)
            writer = self._engine(1, "BEGIN IMMEDIATE", partial(_prepare_writer, mode))
            reader = self._engine(_READERS, "BEGIN", _prepare_reader)
            writer.connect().close()
            # Last: a database that is refused leaves no connection behind.
            watcher = sqlite3.connect(self.path, timeout=BUSY_SECONDS, check_same_thread=False, isolation_level=None)
        self._opened = _Opened(os.getpid(), identity, writer, reader, watcher)
        return True

    def close(self) -> None:
        """Give back connections and locks. In a forked child nothing is touched: they are its parent's."""
        opened = self._opened
        if opened is not None and opened.pid == os.getpid():
            self._opened = None
            self.locks.close()
            opened.writer.dispose()
            opened.reader.dispose()
            opened.watcher.close()

    @contextmanager
    def write(self) -> Iterator[Connection]:
        """BEGIN IMMEDIATE … COMMIT, on the store's one write connection."""
        with translated(), self._sound().writer.begin() as connection:
            yield connection
            self._sound()

    @contextmanager
    def read(self) -> Iterator[Connection]:
        """BEGIN … COMMIT, on a connection that cannot write."""
        with translated(), self._sound().reader.begin() as connection:
            yield connection

    @contextmanager
    def look(self) -> Iterator[Connection]:
        """A connection of its own that cannot write and makes no file; the store need not be open.

        Each statement is a transaction by itself: one over all of them would keep every writer waiting.
        """

        def connect() -> sqlite3.Connection:
            where = f"{self.path.as_uri()}?mode=rw"
            return sqlite3.connect(where, uri=True, timeout=BUSY_SECONDS, check_same_thread=False, isolation_level=None)

        engine = create_engine("sqlite://", creator=connect, poolclass=NullPool, hide_parameters=True)
        with translated(), _prepared_by(engine, _prepare_reader).begin() as connection:
            yield connection

    def alone(self, connection: Connection, name: str) -> AbstractContextManager[None]:  # noqa: ARG002 - see below
        """Nothing to do: the transaction holds the lock of the whole database."""
        return nullcontext()

    def version(self) -> int:
        """SQLite's own count of changes, as a connection sees it that makes none."""
        # Pollers that share the store ask from threads of their own, and one statement has one answer at a time.
        with translated(), self._watching:
            return int(_pragma(self._sound().watcher, "data_version"))

    def _sound(self) -> _Opened:
        """What was opened, as long as it may be used."""
        opened = self._opened
        if opened is None:
            raise StoreError("the store is not open")
        if opened.pid != os.getpid():
            raise StoreError("the store was opened before this process was forked: open a store of its own in each")
        check_same(self.path, opened.identity)
        return opened

    def _engine(self, size: int, begin: str, prepare: Callable[[sqlite3.Connection], None]) -> Engine:
        engine = create_engine(
            URL.create("sqlite", database=str(self.path)),
            poolclass=QueuePool,
            pool_size=size,
            max_overflow=0,
            pool_timeout=_POOL_SECONDS,
            hide_parameters=True,
            execution_options={"compiled_cache": COMPILED},
            connect_args={"timeout": BUSY_SECONDS, "check_same_thread": False, "isolation_level": None},
        )
        return _begun_by(engine, begin, prepare)

    def _warn(self) -> None:
        if self.network is not None:
            log.warning(
                "%s is on a network file system (%s): locks there may not hold; use a local disk",
                self.path,
                self.network,
            )


class SqliteMemory(Silent):
    """A private database in memory, on one connection; it lasts as long as this object."""

    dialect: Dialect = "sqlite"
    blocking = False
    clock: ColumnElement[int] | None = None

    def __init__(self) -> None:
        self.locks: Locks = NoLocks()
        self._alone = threading.RLock()
        self._version = 0
        engine = create_engine(
            "sqlite://",
            poolclass=StaticPool,
            hide_parameters=True,
            execution_options={"compiled_cache": COMPILED},
            connect_args={"check_same_thread": False, "isolation_level": None},
        )
        self._engine = _begun_by(engine, "BEGIN IMMEDIATE", _prepare_nothing)
        finalize(self, engine.dispose)

    def open(self) -> bool:
        """Nothing to do but to look: it is open from the first."""
        check_library(sqlite3.sqlite_version_info)
        return False

    def close(self) -> None:
        """Nothing to do: closing the connection would be forgetting the jobs."""

    @contextmanager
    def write(self) -> Iterator[Connection]:
        """One transaction at a time."""
        with self._transaction() as connection:
            yield connection
            self._version += 1

    def read(self) -> AbstractContextManager[Connection]:
        """As `write`: there is one connection."""
        return self._transaction()

    def alone(self, connection: Connection, name: str) -> AbstractContextManager[None]:  # noqa: ARG002 - see below
        """Nothing to do: there is one connection."""
        return nullcontext()

    def version(self) -> int:
        """How many writes came to their commit."""
        return self._version

    @contextmanager
    def _transaction(self) -> Iterator[Connection]:
        with translated(), self._alone, self._engine.begin() as connection:
            yield connection


def journal_mode(library: tuple[int, ...], *, network: bool) -> str:
    """`wal` where it is safe: no WAL-reset race in the library (version triple), no network in between."""
    fixed = library >= (3, 51, 3) or (3, 50, 7) <= library < (3, 51) or (3, 44, 6) <= library < (3, 45)
    return "wal" if fixed and not network else "persist"


def check_library(library: tuple[int, ...]) -> None:
    """Refuse a library that cannot write many rows in one statement."""
    if library < _OLDEST:
        found, oldest = (".".join(map(str, version)) for version in (library, _OLDEST))
        raise StoreError(f"the SQLite library of this Python is {found}: install one with {oldest} or newer")


def _begun_by(engine: Engine, begin: str, prepare: Callable[[sqlite3.Connection], None]) -> Engine:
    def begun(connection: Connection) -> None:
        # Straight to the driver: each write begins here, and the way around would cost more than the begin.
        cast("sqlite3.Connection", connection.connection.driver_connection).execute(begin)

    event.listen(engine, "begin", begun)
    return _prepared_by(engine, prepare)


def _prepared_by(engine: Engine, prepare: Callable[[sqlite3.Connection], None]) -> Engine:
    def connected(connection: Any, _record: Any) -> None:
        connection.text_factory = _text
        try:
            prepare(connection)
        except BaseException:
            connection.close()
            raise

    event.listen(engine, "connect", connected)
    return engine


def _text(stored: bytes) -> str | bytes:
    """The text; as bytes where it is none, so that the one damaged row is refused and not the whole answer."""
    try:
        return stored.decode()
    except UnicodeDecodeError:
        return stored


def _prepare_writer(mode: str, connection: sqlite3.Connection) -> None:
    _pragma(connection, f"page_size={_PAGE_BYTES}")
    _pragma(connection, f"journal_size_limit={_JOURNAL_BYTES}")
    found = _pragma(connection, f"journal_mode={mode}")
    if found == "wal" and mode != "wal":
        raise StoreUnavailable(
            "another process keeps the database in WAL mode, which is unsafe with this SQLite library"
        )
    _prepare_durable(connection)


def _prepare_reader(connection: sqlite3.Connection) -> None:
    _prepare_durable(connection)
    _pragma(connection, "query_only=ON")


def _prepare_durable(connection: sqlite3.Connection) -> None:
    # macOS acknowledges a sync before it happened unless asked this way; elsewhere it changes nothing.
    _pragma(connection, "fullfsync=ON")
    _pragma(connection, "synchronous=FULL")
    if _pragma(connection, "synchronous") != 2:
        raise StoreError("SQLite does not take synchronous=FULL: a commit would not mean that it is on disk")


def _prepare_nothing(_connection: sqlite3.Connection) -> None:
    """A database in memory has no durability to set."""


def _pragma(connection: sqlite3.Connection, text: str) -> Any:
    row = connection.execute(f"PRAGMA {text}").fetchone()
    return None if row is None else row[0]
