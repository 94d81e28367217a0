"""A database server: whether it takes writes, what a commit to it means, and how long it lets us wait.

Each look is one statement, a name and how bad it is that the answer is what it is. What Tarry sets
itself in every transaction (isolation, time-outs, strictness) needs no look.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass

from sqlalchemy import bindparam, text

from tarry.store.doctor.findings import Check, Finding, Level, Patient
from tarry.words import SECOND, Instant

CONNECTIONS = 5
"""How many a process has: one that writes, and a few that read."""

_APART = 5


@dataclass(frozen=True, slots=True)
class _Setting:
    """One answer of the server, and what it means unless `is_well` holds of it; `{}` is the answer."""

    name: str
    query: str
    is_well: Callable[[str], bool]
    level: Level
    trouble: str

    def look(self, patient: Patient) -> Finding:
        """How it is."""
        answer = str(patient.connection.scalar(text(self.query)))
        if self.is_well(answer):
            return Finding(self.name, Level.OK, answer)
        return Finding(self.name, self.level, self.trouble.format(answer))


def _is(*wanted: str) -> Callable[[str], bool]:
    return lambda answer: answer.lower() in wanted


_POSTGRES: Sequence[_Setting] = (
    _Setting("server", "SHOW server_version", lambda _: True, Level.OK, ""),
    _Setting(
        "writes",
        "SELECT CASE WHEN pg_is_in_recovery() THEN 'standby' ELSE 'taken' END",
        _is("taken"),
        Level.ERROR,
        "this server is a {}: it takes no writes; name the one that does",
    ),
    _Setting(
        "fsync", "SHOW fsync", _is("on"), Level.ERROR, "{}: a crash of its machine can damage the database; turn it on"
    ),
    _Setting(
        "full_page_writes",
        "SHOW full_page_writes",
        _is("on"),
        Level.ERROR,
        "{}: a crash of its machine can damage the database; turn it on",
    ),
    _Setting(
        "synchronous_commit",
        "SHOW synchronous_commit",
        _is("on", "remote_write", "remote_apply"),
        Level.NOTE,
        "{} for this user: every commit of Tarry waits for the disk all the same",
    ),
    _Setting(
        "encoding", "SHOW server_encoding", _is("utf8"), Level.ERROR, "{}: only UTF8 can store every key and answer"
    ),
    _Setting(
        "autovacuum",
        "SHOW autovacuum",
        _is("on"),
        Level.WARNING,
        "{}: the tables grow with every poll and get slower; turn it on",
    ),
)

_MARIADB: Sequence[_Setting] = (
    _Setting("server", "SELECT version()", lambda _: True, Level.OK, ""),
    _Setting(
        "writes",
        "SELECT IF(@@GLOBAL.read_only, 'read-only', 'taken')",
        _is("taken"),
        Level.ERROR,
        "this server is {}: name the one that takes writes",
    ),
    _Setting(
        "commits",
        "SELECT @@GLOBAL.innodb_flush_log_at_trx_commit",
        _is("1"),
        Level.ERROR,
        "innodb_flush_log_at_trx_commit is {}: a crash can lose what was committed; set it to 1",
    ),
    _Setting(
        "doublewrite",
        "SELECT @@GLOBAL.innodb_doublewrite",
        _is("1", "on"),
        Level.ERROR,
        "innodb_doublewrite is {}: a crash can damage the database; turn it on",
    ),
    _Setting(
        "max_allowed_packet",
        "SELECT @@GLOBAL.max_allowed_packet",
        lambda answer: int(answer) >= 16 << 20,
        Level.WARNING,
        "{} bytes: larger results cannot be stored; 64M is enough",
    ),
    _Setting(
        "sql_mode",
        "SELECT @@SESSION.sql_mode",
        lambda answer: "STRICT_" in answer,
        Level.ERROR,
        "{}: not strict, so values that do not fit are cut",
    ),
    _Setting(
        "charset",
        "SELECT @@SESSION.character_set_connection",
        _is("utf8mb4"),
        Level.ERROR,
        "{}: only utf8mb4 can carry every key and answer",
    ),
)


def clocks(here: Instant, there: Instant) -> Finding:
    """How far the server's clock, by which leases are judged, is from this machine's."""
    apart = abs(here - there) / SECOND
    text = f"the server's is {apart:.1f} s {'ahead of' if there > here else 'behind'} this machine's"
    return Finding("clocks", Level.OK if apart < _APART else Level.WARNING, text)


def postgres(patient: Patient) -> Iterator[Finding]:
    """What PostgreSQL says of itself."""
    for setting in _POSTGRES:
        yield setting.look(patient)
    yield _connections(patient, "SHOW max_connections")


def mariadb(patient: Patient) -> Iterator[Finding]:
    """What MariaDB or MySQL says of itself, and of the tables."""
    for setting in _MARIADB:
        yield setting.look(patient)
    yield _connections(patient, "SELECT @@GLOBAL.max_connections")
    yield from _engines(patient)


def _connections(patient: Patient, query: str) -> Finding:
    most = int(patient.connection.scalar(text(query)) or 0)
    if most >= 4 * CONNECTIONS:
        return Finding("connections", Level.OK, f"up to {most}; a process needs {CONNECTIONS}")
    return Finding("connections", Level.WARNING, f"only {most}; a process needs {CONNECTIONS}: raise max_connections")


def _engines(patient: Patient) -> Iterator[Finding]:
    query = text(
        "SELECT table_name, engine FROM information_schema.tables WHERE table_schema = DATABASE()"
        " AND table_name IN :names AND engine <> 'InnoDB'"
    ).bindparams(bindparam("names", list(patient.tables.metadata.tables), expanding=True))
    for table, engine in patient.connection.execute(query):
        yield Finding("engine", Level.ERROR, f"{table} is kept by {engine}: only InnoDB has transactions")


CHECKS: Mapping[str, Check] = {"postgresql": postgres, "mysql": mariadb}
"""By whose SQL a database speaks."""
