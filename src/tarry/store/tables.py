"""The tables: what a job, its events, its spec and a worker look like in SQL.

Instants and spans are BIGINT microseconds, never a DATETIME: those lose zones,
fractions or both, each database in its own way. Texts are TEXT, JSON too, so that
a database neither reorders nor refuses what was written.

Keys are TEXT as well and are compared by bytes: that is SQLite's default (the
BINARY collation), and it keeps them readable in any database browser. MariaDB has no
text that is compared so (blanks at the end do not count): there they are VARBINARY.

Only columns that find jobs are indexed (`wake`, `owner`, the key); those
that every checkpoint writes are not.
"""

from __future__ import annotations

import re
from functools import cache
from typing import Any

from sqlalchemy import (
    DDL,
    BigInteger,
    Column,
    Dialect,
    Index,
    Integer,
    MetaData,
    SmallInteger,
    String,
    Table,
    Text,
    TypeDecorator,
    event,
)
from sqlalchemy.dialects import mysql
from sqlalchemy.types import TypeEngine

from tarry.errors import StoreError
from tarry.store.rows import KEY_BYTES, NAMESPACE_BYTES

_PREFIX = re.compile(r"[a-z_][a-z0-9_]{0,30}")

# SQLite numbers rows by itself only where the type says exactly INTEGER.
_Id = BigInteger().with_variant(Integer, "sqlite")


# MariaDB's TEXT ends after 64 KB.
_Text = Text().with_variant(mysql.LONGTEXT(), "mysql")

# Where nothing is said, MariaDB folds case and knows no character past the first 65,536.
_OPTIONS: dict[str, Any] = {
    "mysql_engine": "InnoDB",
    "mysql_charset": "utf8mb4",
    "mysql_collate": "utf8mb4_bin",
    "mysql_row_format": "DYNAMIC",
    # Ids are never used again, not even those of deleted rows: a job may still name one as its owner.
    "sqlite_autoincrement": True,
}
_NO_NUMBERS = {name: value for name, value in _OPTIONS.items() if name.startswith("mysql")}

# Rows that every poll rewrites: room in each page keeps a new version beside the old one, out of the indexes.
_ROOM: Any = DDL(  # type: ignore[no-untyped-call]  # SQLAlchemy leaves it untyped
    "ALTER TABLE %(fullname)s SET (fillfactor = 70, autovacuum_vacuum_scale_factor = 0.02,"
    " autovacuum_vacuum_threshold = 1000, autovacuum_analyze_scale_factor = 0.05)"
)


class _Name(TypeDecorator[str]):
    """A text that is compared byte by byte."""

    impl = Text
    cache_ok = True

    def __init__(self, most: int) -> None:
        super().__init__()
        self.most = most

    def load_dialect_impl(self, dialect: Dialect) -> TypeEngine[Any]:
        """`most` bytes where the length is part of the type."""
        if dialect.name == "mysql":
            return dialect.type_descriptor(mysql.VARBINARY(self.most))
        return dialect.type_descriptor(Text(collation="C") if dialect.name == "postgresql" else Text())

    def process_bind_param(self, value: str | None, dialect: Dialect) -> Any:
        """Bytes for MariaDB."""
        return value.encode() if isinstance(value, str) and dialect.name == "mysql" else value

    def process_result_value(self, value: Any, dialect: Dialect) -> Any:
        """Text again; what is none stays as it is, so that the one damaged row is refused."""
        return value.decode(errors="replace") if isinstance(value, bytes) and dialect.name == "mysql" else value


@cache
def tables_under(prefix: str) -> Tables:
    """The tables of a prefix, made once: what is worked out for one store holds for the next, its SQL too."""
    return Tables(prefix)


class Tables:
    """All tables under one prefix, with the `metadata` to hand to a migration tool."""

    def __init__(self, prefix: str = "tarry_") -> None:
        if not _PREFIX.fullmatch(prefix):
            raise StoreError(
                f"table prefix {prefix!r}: use 1 to 31 of a-z, 0-9 and _, not starting with a digit, such as 'tarry_'"
            )
        self.prefix = prefix
        self.metadata = MetaData()
        self.meta = self._meta()
        self.worker = self._worker()
        self.spec = self._spec()
        self.job = self._job()
        self.event = self._event()
        self.outbox = self._outbox()

    def _meta(self) -> Table:
        return Table(
            f"{self.prefix}meta",
            self.metadata,
            Column("name", String(64), primary_key=True),
            Column("value", String(64), nullable=False),
            **_NO_NUMBERS,
        )

    def _worker(self) -> Table:
        return Table(
            f"{self.prefix}worker",
            self.metadata,
            Column("id", _Id, primary_key=True),
            Column("uuid", String(64), nullable=False, unique=True),
            Column("lease_until", BigInteger, nullable=False),
            # 1 where a lock on a file tells whether the process is alive.
            Column("guarded", SmallInteger, nullable=False),
            Column("dead", SmallInteger, nullable=False),
            Column("released", SmallInteger, nullable=False),
            **_OPTIONS,
        )

    def _spec(self) -> Table:
        return Table(
            f"{self.prefix}spec",
            self.metadata,
            Column("hash", String(64), primary_key=True),
            Column("json", _Text, nullable=False),
            **_NO_NUMBERS,
        )

    def _job(self) -> Table:
        table = Table(
            f"{self.prefix}job",
            self.metadata,
            Column("id", _Id, primary_key=True),
            Column("namespace", _Name(NAMESPACE_BYTES), nullable=False),
            Column("key", _Name(KEY_BYTES), nullable=False),
            Column("run", Integer, nullable=False),
            Column("token", String(64), nullable=False),
            Column("fingerprint", String(255), nullable=False),
            Column("spec", String(64), nullable=False),
            Column("labels", _Text, nullable=False),
            Column("state", _Text, nullable=False),
            Column("phase", String(16), nullable=False),
            Column("owner", BigInteger),
            Column("fence", BigInteger, nullable=False),
            Column("nonce", String(64)),
            Column("step", BigInteger, nullable=False),
            Column("cmd", BigInteger, nullable=False),
            Column("paused", SmallInteger, nullable=False),
            Column("polls", BigInteger, nullable=False),
            Column("reserved", SmallInteger, nullable=False),
            Column("polled_at", BigInteger),
            Column("created_at", BigInteger, nullable=False),
            Column("due", BigInteger),
            Column("wake", BigInteger),
            Column("deadline", BigInteger),
            Column("max_polls", BigInteger),
            Column("floor", BigInteger, nullable=False),
            Column("strikes", Integer, nullable=False),
            # 1 while its worker makes no call but this job's: if that worker dies, it was this one.
            Column("alone", SmallInteger, nullable=False),
            Column("event_seq", BigInteger, nullable=False),
            Column("told", BigInteger, nullable=False),
            Column("cancel_requested_at", BigInteger),
            Column("last", _Text),
            Column("submit", _Text),
            Column("baseline", _Text),
            Column("poll", _Text),
            Column("status_url", _Text),
            Column("validators", _Text),
            Column("output", _Text),
            Column("timeline", _Text),
            # What a polled callable handed to its next call.
            Column("carried", _Text),
            Column("outcome", String(16)),
            Column("finished_at", BigInteger),
            **_OPTIONS,
        )
        event.listen(table, "after_create", _ROOM.execute_if(dialect="postgresql"))
        self._index(table, "key", "namespace", "key", unique=True)
        self._index(table, "listing", "namespace", "id")
        # Pruning asks which specs are still used.
        self._index(table, "spec", "spec")
        # Retention asks for what has been over for longest.
        self._index(table, "finished", "namespace", "finished_at", partial=True)
        # Partial: of many jobs, few want an owner or have one.
        self._index(table, "wake", "namespace", "wake", partial=True)
        self._index(table, "owner", "owner", partial=True)
        return table

    def _event(self) -> Table:
        return Table(
            f"{self.prefix}event",
            self.metadata,
            # A job's events lie together, in order: the key is the table.
            Column("job", BigInteger, primary_key=True, autoincrement=False),
            Column("seq", BigInteger, primary_key=True, autoincrement=False),
            Column("run", Integer, nullable=False),
            Column("kind", String(64), nullable=False),
            Column("at", BigInteger, nullable=False),
            Column("data", _Text, nullable=False),
            sqlite_with_rowid=False,
            **_NO_NUMBERS,
        )

    def _outbox(self) -> Table:
        table = Table(
            f"{self.prefix}outbox",
            self.metadata,
            Column("id", _Id, primary_key=True),
            Column("job", BigInteger, nullable=False),
            Column("run", Integer, nullable=False),
            Column("kind", String(16), nullable=False),
            Column("state", String(16), nullable=False),
            Column("owner", BigInteger),
            Column("nonce", String(64)),
            # When it wants a worker; none while one has it, and when it is done or dead.
            Column("wake", BigInteger),
            Column("tries", Integer, nullable=False),
            Column("error", _Text),
            **_OPTIONS,
        )
        self._index(table, "job", "job", "run", "kind", unique=True)
        for name in ("wake", "owner"):
            self._index(table, name, name, partial=True)
        return table

    def _index(self, table: Table, name: str, *columns: str, unique: bool = False, partial: bool = False) -> None:
        where = table.c[columns[-1]].is_not(None) if partial else None
        Index(
            f"{table.name}_{name}",
            *(table.c[column] for column in columns),
            unique=unique,
            sqlite_where=where,
            postgresql_where=where,
        )
