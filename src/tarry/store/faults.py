"""What a fault of the database means: pass it by, or stop and do something.

Faults are told apart by the database's own code, never by words of its
message. Passing faults become `StoreUnavailable`; the rest becomes a
`StoreError` with the way out. A message of ours never holds a value that was
stored: it is the database's own words plus advice.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Any

from sqlalchemy.exc import DBAPIError, SQLAlchemyError, StatementError
from sqlalchemy.exc import TimeoutError as PoolTimeout

from tarry.errors import StoreError, StoreUnavailable
from tarry.store.codes import Fault, of_number, of_sqlstate

# The first word of a code tells enough: SQLITE_BUSY_SNAPSHOT is a kind of SQLITE_BUSY.
# A full disk passes too: nothing is polled until there is room, then all goes on by itself.
_PASSING = frozenset({"BUSY", "LOCKED", "PROTOCOL", "INTERRUPT", "NOMEM", "FULL"})

_ADVICE: Mapping[str, str] = {
    "FULL": "the disk is full, or the database has reached its largest size: make room",
    "READONLY": "the database cannot be written: check the rights of the file and its folder, and how it is mounted",
    "CANTOPEN": "the database file cannot be opened: check the path, and the rights of the file and its folder",
    "PERM": "the database file may not be used: check its rights",
    "AUTH": "the database file may not be used: check its rights",
    "CORRUPT": "the database is damaged and was left as it is: restore a backup, or try `sqlite3 FILE .recover`",
    "NOTADB": "the file is no SQLite database and was left as it is: name another file",
    "IOERR": "reading or writing the disk failed: check the disk and the file system",
    "SCHEMA": "the tables changed under way: start again",
    "ERROR": "the tables do not look as expected: open the store before it is used, and let nothing else change them",
}
_VALUE = "a value cannot be stored"

_NO_ACCESS = (PermissionError, FileNotFoundError, IsADirectoryError, NotADirectoryError)

DATA_ERRORS = (OverflowError, UnicodeError, ValueError, TypeError, RecursionError)
"""What the driver or the JSON encoder raises for a value that no retry will make storable."""

_DATA_CODES = frozenset({"CONSTRAINT", "MISMATCH", "TOOBIG", "RANGE"})
_TWICE = frozenset({"SQLITE_CONSTRAINT_UNIQUE", "SQLITE_CONSTRAINT_PRIMARYKEY"})


class Unstorable(StoreError):
    """One value, not the database, is at fault: the rest of a batch can be stored."""


class Duplicate(Unstorable):
    """A row with this key is there already."""


def classify(error: Exception) -> StoreError:
    """The error of ours that says what to do about `error`."""
    if isinstance(error, StoreError):
        return error
    if isinstance(error, DBAPIError):
        if error.connection_invalidated:
            return StoreUnavailable("the connection to the database broke")
        return _of_driver(error.orig)
    if isinstance(error, StatementError) and isinstance(error.orig, DATA_ERRORS):
        return classify(error.orig)
    if isinstance(error, sqlite3.Error):
        return _of_driver(error)
    if isinstance(error, PoolTimeout):
        return StoreUnavailable("no connection to the database became free in time")
    if isinstance(error, OSError):
        return _of_system(error)
    if isinstance(error, DATA_ERRORS):
        return Unstorable(f"{_VALUE}: {type(error).__name__}")
    return StoreError(f"the database cannot be used: {type(error).__name__}")


@contextmanager
def translated() -> Iterator[None]:
    """Faults of the database leave the block as errors of ours.

    The driver's own error is kept as the cause rather than SQLAlchemy's: that
    one carries the statement's values.
    """
    try:
        yield
    except StoreError:
        raise
    except (SQLAlchemyError, sqlite3.Error, OSError, *DATA_ERRORS) as error:
        raise classify(error) from (error.orig if isinstance(error, StatementError) else error)


def _of_driver(error: BaseException | None) -> StoreError:
    # First, because errors of PyMySQL may have a SQLSTATE as well, which says less.
    if type(error).__module__.startswith("pymysql"):
        return _of_mariadb(error)
    if hasattr(error, "sqlstate"):
        return _of_postgres(error)
    name = getattr(error, "sqlite_errorname", None)
    if name is None:
        return _without_code(error)
    code = name.removeprefix("SQLITE_").partition("_")[0]
    if code in _PASSING:
        return StoreUnavailable(f"{_ADVICE.get(code, 'the database is busy')} ({name})")
    if name in _TWICE:
        return Duplicate(f"{_VALUE} ({name})")
    if code in _DATA_CODES:
        return Unstorable(f"{_VALUE} ({name})")
    advice = _ADVICE.get(code, "the database cannot be used")
    return StoreError(f"{advice} ({name})")


def _of_postgres(error: Any) -> StoreError:
    if error.sqlstate is not None:
        return _told(*of_sqlstate(error.sqlstate), error.sqlstate)
    kind = type(error).__name__
    if kind in {"DataError", "NotSupportedError"}:
        # The driver itself refuses a value before anything is sent.
        return Unstorable(f"{_VALUE}: {kind}")
    if "OperationalError" not in {base.__name__ for base in type(error).__mro__}:
        return StoreError(f"the database cannot be used: {kind}")
    # Before there is a connection there are no codes: of the server's refusals nothing can be told apart.
    return StoreUnavailable("the database is not reached: check its address, database, user and password")


def _of_mariadb(error: Any) -> StoreError:
    number = error.args[0] if error.args else None
    if isinstance(number, int) and number > 0:
        return _told(*of_number(number), str(number))
    return StoreUnavailable(f"the connection to the database broke ({type(error).__name__})")


def _told(fault: Fault, advice: str, code: str) -> StoreError:
    match fault:
        case Fault.PASSING:
            return StoreUnavailable(f"{advice or 'the database is busy or away'} ({code})")
        case Fault.TWICE:
            return Duplicate(f"{_VALUE}: it is there already ({code})")
        case Fault.VALUE:
            return Unstorable(f"{_VALUE} ({code})")
        case Fault.OTHER:
            return StoreError(f"{advice or 'the database cannot be used'} ({code})")


def _without_code(error: BaseException | None) -> StoreError:
    if isinstance(
        error, sqlite3.InterfaceError | sqlite3.DataError | sqlite3.IntegrityError | sqlite3.NotSupportedError
    ):
        return Unstorable(f"{_VALUE}: {type(error).__name__}")
    # The module itself refuses: the connection was closed, or is used from elsewhere.
    return StoreError(f"the database connection cannot be used: {type(error).__name__}")


def _of_system(error: OSError) -> StoreError:
    words = f"{error.strerror or type(error).__name__}{f': {error.filename}' if error.filename else ''}"
    if isinstance(error, _NO_ACCESS):
        return StoreError(f"the database file cannot be used: {words}")
    return StoreUnavailable(f"the system refused for now: {words}")
