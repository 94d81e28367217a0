"""What the databases behind a network have in common.

A process has one connection that writes and a few that read. Each is tried before it
is used, and each wait has an end: for a connection, for a lock, for a statement, and for
an answer that never comes. Which of it broke does not matter to the caller: the whole unit of
work is rolled back and made again.

Locks in the database (`FOR SHARE`, `FOR UPDATE`) last as long as a transaction, and none
outlives its connection, so that a pooler in between may hand connections around.
"""

from __future__ import annotations

import logging
import os
from abc import ABC, abstractmethod
from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass
from typing import Any

from sqlalchemy import URL, ColumnElement, Connection, Engine, create_engine
from sqlalchemy.pool import QueuePool

from tarry.errors import StoreError
from tarry.store.database import Dialect, Silent
from tarry.store.faults import translated
from tarry.store.locks import Locks, NoLocks

log = logging.getLogger("tarry.store")

# A connection that is silent is given up, and a new one tried: 10 s in all, which the shortest lease has room for.
CONNECT_SECONDS = 5
LOCK_SECONDS = 3
STATEMENT_SECONDS = 4
ANSWER_SECONDS = 5
"""Longer than a statement may take: only a peer that is gone is silent for so long."""
IDLE_SECONDS = 60
"""A transaction of ours that nobody goes on with ends by then, and its locks with it."""
READERS = 4
POOL_SECONDS = 30


@dataclass(frozen=True, slots=True)
class _Opened:
    """What `open` made, in which process."""

    pid: int
    writer: Engine
    reader: Engine


class Server(Silent, ABC):
    """One database of a server."""

    dialect: Dialect
    blocking = True

    def __init__(self, url: URL, clock: ColumnElement[int] | None) -> None:
        self.url = url
        self.clock = clock
        self.locks: Locks = NoLocks()
        self._opened: _Opened | None = None

    @abstractmethod
    def engine(self, *, size: int, reads_only: bool) -> Engine:
        """An engine with a pool of this size, whose transactions write, or see one state and cannot write."""

    @abstractmethod
    def check(self, connection: Connection) -> None:
        """Look at the settings that durability rests on: raise `StoreError`, or warn of what only an admin can set."""

    @abstractmethod
    def version(self) -> int:
        """A number that is another one after each commit, whoever made it."""

    @abstractmethod
    def alone(self, connection: Connection, name: str) -> AbstractContextManager[None]:
        """Keep every other process out of the block of this name."""

    def pooled(self, size: int, **options: Any) -> Engine:
        """An engine of SQLAlchemy's with these options, and `size` connections that are tried before they are used."""
        return create_engine(
            self.url,
            poolclass=QueuePool,
            pool_size=size,
            max_overflow=0,
            pool_timeout=POOL_SECONDS,
            pool_pre_ping=True,
            hide_parameters=True,
            **options,
        )

    def open(self) -> bool:
        """Connect, and check the settings that durability rests on."""
        if self._opened is not None:
            return False
        with translated():
            writer = self.engine(size=1, reads_only=False)
            reader = self.engine(size=READERS, reads_only=True)
            try:
                with writer.begin() as connection:
                    self.check(connection)
            except BaseException:
                writer.dispose()
                raise
        self._opened = _Opened(os.getpid(), writer, reader)
        return True

    def close(self) -> None:
        """Give back connections. In a forked child nothing is touched: they are its parent's."""
        opened = self._opened
        if opened is not None and opened.pid == os.getpid():
            self._opened = None
            opened.writer.dispose()
            opened.reader.dispose()

    @contextmanager
    def write(self) -> Iterator[Connection]:
        """One transaction, READ COMMITTED."""
        with translated(), self._sound().writer.begin() as connection:
            yield connection

    @contextmanager
    def read(self) -> Iterator[Connection]:
        """One transaction, REPEATABLE READ, on a connection that cannot write."""
        with translated(), self._sound().reader.begin() as connection:
            yield connection

    def _sound(self) -> _Opened:
        """What was opened, as long as it may be used."""
        opened = self._opened
        if opened is None:
            raise StoreError("the store is not open")
        if opened.pid != os.getpid():
            raise StoreError("the store was opened before this process was forked: open a store of its own in each")
        return opened
