"""MariaDB and MySQL, by PyMySQL."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from itertools import count
from typing import Any

from sqlalchemy import URL, BigInteger, ColumnElement, Connection, Engine, event, literal_column, text

from tarry.errors import StoreError, StoreUnavailable
from tarry.store.database import Dialect
from tarry.store.servers import (
    ANSWER_SECONDS,
    CONNECT_SECONDS,
    IDLE_SECONDS,
    LOCK_SECONDS,
    STATEMENT_SECONDS,
    Server,
    log,
)

# The session's zone is UTC, so that no hour comes twice.
CLOCK: ColumnElement[int] = literal_column("CAST(UNIX_TIMESTAMP(SYSDATE(6)) * 1000000 AS SIGNED)", BigInteger)

_LEAST_PACKET = 16 << 20

# Strict: a value that does not fit is an error, and never cut.
_MODE = "STRICT_ALL_TABLES,NO_ENGINE_SUBSTITUTION,ERROR_FOR_DIVISION_BY_ZERO"
_SESSION = f"time_zone = '+00:00', sql_mode = '{_MODE}', innodb_lock_wait_timeout = {LOCK_SECONDS}"
_OF_MARIADB = f"max_statement_time = {STATEMENT_SECONDS}, idle_transaction_timeout = {IDLE_SECONDS}"
_OF_MYSQL = f"max_execution_time = {STATEMENT_SECONDS * 1000}"


class MariaDb(Server):
    """One database of MariaDB or MySQL; `clock` is for tests, which have a clock of their own."""

    dialect: Dialect = "mysql"

    def __init__(self, url: URL, *, clock: ColumnElement[int] | None = CLOCK) -> None:
        super().__init__(url.set(drivername="mysql+pymysql"), clock)
        self._asked = count()

    def engine(self, *, size: int, reads_only: bool) -> Engine:
        """Its connections are in UTC and strict; those that read begin transactions that cannot write."""
        engine = self.pooled(
            size,
            isolation_level="REPEATABLE READ" if reads_only else "READ COMMITTED",
            connect_args={
                "charset": "utf8mb4",
                "connect_timeout": CONNECT_SECONDS,
                "read_timeout": ANSWER_SECONDS,
                "write_timeout": ANSWER_SECONDS,
            },
        )

        def connected(connection: Any, _record: Any) -> None:
            more = _OF_MARIADB if "mariadb" in connection.get_server_info().lower() else _OF_MYSQL
            with connection.cursor() as cursor:
                cursor.execute(f"SET SESSION {_SESSION}, {more}")
                if reads_only:
                    cursor.execute("SET SESSION TRANSACTION READ ONLY")

        event.listen(engine, "connect", connected)
        return engine

    def check(self, connection: Connection) -> None:
        """A commit must mean "on disk", which only an admin may set; and rows must be able to arrive."""
        flushed = connection.scalar(text("SELECT @@GLOBAL.innodb_flush_log_at_trx_commit"))
        if flushed != 1:
            log.warning(
                "innodb_flush_log_at_trx_commit is %s: a crash can lose what was committed; it should be 1", flushed
            )
        packet = int(connection.scalar(text("SELECT @@max_allowed_packet")) or 0)
        if packet < _LEAST_PACKET:
            log.warning("max_allowed_packet is %s: results larger than that cannot be stored; 64M is enough", packet)
        if connection.scalar(text("SELECT @@innodb_read_only")):
            raise StoreError("the database server is read-only: name the one that takes writes")

    def version(self) -> int:
        """Another number each time: nothing cheap tells whether there was a commit."""
        self._sound()
        return next(self._asked)

    @contextmanager
    def alone(self, connection: Connection, name: str) -> Iterator[None]:
        """To the end of the block: what makes tables commits by itself here."""
        params = {"name": f"{self.url.database}.{name}"[:64], "seconds": LOCK_SECONDS}
        if connection.scalar(text("SELECT GET_LOCK(:name, :seconds)"), params) != 1:
            raise StoreUnavailable("another process is making the tables")
        try:
            yield
        finally:
            connection.execute(text("DO RELEASE_LOCK(:name)"), {"name": params["name"]})
