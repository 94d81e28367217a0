"""PostgreSQL, by psycopg.

Every transaction brings its own settings along, in the one message that begins it
(`SET LOCAL`): nothing is left on a connection that a pooler may give to somebody else next.
"""

from __future__ import annotations

import zlib
from collections.abc import Callable, Generator, Iterator
from contextlib import contextmanager
from functools import partial
from typing import Any, TypeVar

import psycopg
from sqlalchemy import URL, BigInteger, ColumnElement, Connection, Engine, event, literal_column, text

from tarry.chance import token
from tarry.store.database import Dialect
from tarry.store.faults import translated
from tarry.store.listening import Listener
from tarry.store.servers import (
    ANSWER_SECONDS,
    CONNECT_SECONDS,
    IDLE_SECONDS,
    LOCK_SECONDS,
    STATEMENT_SECONDS,
    Server,
    log,
)

T = TypeVar("T")

# Not now(): that stands still from the begin of a transaction on.
CLOCK: ColumnElement[int] = literal_column(
    "CAST(extract(epoch FROM clock_timestamp()) * 1000000 AS bigint)", BigInteger
)

_LIMITS = (
    f"SET LOCAL statement_timeout = '{STATEMENT_SECONDS}s'; "
    f"SET LOCAL lock_timeout = '{LOCK_SECONDS}s'; "
    f"SET LOCAL idle_in_transaction_session_timeout = '{IDLE_SECONDS}s'"
)
_WRITE = f"BEGIN ISOLATION LEVEL READ COMMITTED READ WRITE; {_LIMITS}"
_READ = f"BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY; {_LIMITS}"

# A cancelled process would otherwise wait for a dead peer as long as the system does, which is minutes.
_CONNECT = {
    "connect_timeout": CONNECT_SECONDS,
    "keepalives_idle": 10,
    "keepalives_interval": 5,
    "keepalives_count": 3,
    "tcp_user_timeout": ANSWER_SECONDS * 1000,
    # Prepared statements belong to a connection, and a pooler hands those around.
    "prepare_threshold": None,
}


class Postgres(Server):
    """One PostgreSQL database; `clock` is for tests, which have a clock of their own."""

    dialect: Dialect = "postgresql"

    def __init__(self, url: URL, *, clock: ColumnElement[int] | None = CLOCK) -> None:
        super().__init__(url.set(drivername="postgresql+psycopg"), clock)
        self._write = _WRITE
        self._myself = token()
        self._options = _CONNECT | ({} if "application_name" in url.query else {"application_name": "tarry"})

    def engine(self, *, size: int, reads_only: bool) -> Engine:
        """Its connections begin no transaction by themselves: the text below does."""
        engine = self.pooled(
            size,
            isolation_level="AUTOCOMMIT",
            use_native_hstore=False,
            connect_args=self._options,
        )

        def begun(connection: Connection) -> None:
            connection.exec_driver_sql(_READ if reads_only else self._write)

        event.listen(engine, "do_connect", _connect)
        event.listen(engine, "begin", begun)
        return engine

    def check(self, connection: Connection) -> None:
        """A commit must mean "on disk": what any user may set is set, what only an admin may is warned of."""
        if connection.scalar(text("SHOW synchronous_commit")) in {"off", "local"}:
            self._write = f"{_WRITE}; SET LOCAL synchronous_commit = on"
        for name in ("fsync", "full_page_writes"):
            if connection.scalar(text(f"SHOW {name}")) != "on":
                log.warning(
                    "PostgreSQL runs with %s = off: a crash of its machine can lose or damage what it took", name
                )

    def version(self) -> int:
        """What is visible now, as one number: each commit changes what is."""
        with translated(), self._sound().reader.connect() as connection:
            return int(connection.scalar(_SNAPSHOT) or 0)

    @contextmanager
    def alone(self, connection: Connection, name: str) -> Iterator[None]:
        """To the end of the transaction, so that what was made is seen by who comes next."""
        connection.execute(text("SELECT pg_advisory_xact_lock(:number)"), {"number": zlib.crc32(name.encode())})
        yield

    def tell(self, connection: Connection, name: str) -> None:
        """By NOTIFY. The server makes such commits wait for each other, so it is for what is worth being heard of at once."""
        connection.exec_driver_sql("SELECT pg_notify(%s, %s)", (name, self._myself))

    def listen(self, name: str, ring: Callable[[], object]) -> Callable[[], None]:
        """On a connection of its own, which is made anew when it breaks."""
        args, options = self._sound().reader.dialect.create_connect_args(self.url)
        connect = partial(_Bounded.connect, *args, **{**options, **self._options}, autocommit=True)
        return Listener(connect, name, self._myself, ring).stop


_SNAPSHOT = text("SELECT hashtextextended(CAST(pg_current_snapshot() AS text), 0)")


class _Bounded(psycopg.Connection[Any]):
    """A connection that takes no answer in time for a broken one."""

    def wait(self, gen: Generator[Any, Any, T], interval: float = 0.1, timeout: float | None = None) -> T:
        try:
            return super().wait(gen, interval, ANSWER_SECONDS if timeout is None else timeout)
        except psycopg.OperationalError:
            if self.pgconn.transaction_status == psycopg.pq.TransactionStatus.ACTIVE:
                # The answer may still come, and would be taken for that to the next question.
                self.close()
            raise


def _connect(_dialect: Any, _record: Any, args: tuple[Any, ...], options: dict[str, Any]) -> psycopg.Connection[Any]:
    return _Bounded.connect(*args, **options)
