"""Every error of the database becomes one of ours, by its code."""

from __future__ import annotations

import errno
import inspect
import pickle
import sqlite3
from typing import Any

import pytest
import sqlalchemy.exc
from sqlalchemy.exc import DBAPIError, StatementError

from tarry.errors import LeaseLost, StoreError, StoreUnavailable
from tarry.store.faults import Duplicate, Unstorable, classify, translated

CODES = sorted(name for name in dir(sqlite3) if name.startswith("SQLITE_") and isinstance(getattr(sqlite3, name), int))


def driver_error(name: str | None, kind: type[sqlite3.Error] = sqlite3.OperationalError) -> sqlite3.Error:
    """What the driver raises with this code, with misleading words."""
    error = kind("database is locked, says the message")
    if name is not None:
        error.sqlite_errorname = name
    return error


def wrapped(orig: BaseException) -> DBAPIError:
    """As SQLAlchemy passes it on."""
    return DBAPIError("SELECT :secret", {"secret": "s3cr3t"}, orig)


@pytest.mark.parametrize(
    ("name", "kind"),
    [
        ("SQLITE_BUSY", StoreUnavailable),
        ("SQLITE_BUSY_SNAPSHOT", StoreUnavailable),
        ("SQLITE_LOCKED_SHAREDCACHE", StoreUnavailable),
        ("SQLITE_PROTOCOL", StoreUnavailable),
        ("SQLITE_FULL", StoreUnavailable),
        ("SQLITE_READONLY_DBMOVED", StoreError),
        ("SQLITE_IOERR_FSYNC", StoreError),
        ("SQLITE_CORRUPT_VTAB", StoreError),
        ("SQLITE_NOTADB", StoreError),
        ("SQLITE_CANTOPEN", StoreError),
        ("SQLITE_ERROR", StoreError),
        ("SQLITE_NOBODY_KNOWS", StoreError),
        ("SQLITE_CONSTRAINT_UNIQUE", Duplicate),
        ("SQLITE_CONSTRAINT_NOTNULL", Unstorable),
        ("SQLITE_TOOBIG", Unstorable),
    ],
)
def test_the_code_decides(name: str, kind: type[StoreError]) -> None:
    """The code, never the words; and the code is there to be searched for."""
    for error in (driver_error(name), wrapped(driver_error(name))):
        found = classify(error)
        assert type(found) is kind
        assert f"({name})" in str(found)
        assert "says the message" not in str(found)


@pytest.mark.parametrize("name", CODES)
def test_every_code_of_the_driver_has_an_answer(name: str) -> None:
    """No code of SQLite leaves the store as something else than a store error."""
    assert isinstance(classify(driver_error(name)), StoreError)


def errors_of_sqlalchemy() -> list[Any]:
    """All error classes that SQLAlchemy has."""
    found = vars(sqlalchemy.exc).values()
    return sorted(
        (kind for kind in found if inspect.isclass(kind) and issubclass(kind, sqlalchemy.exc.SQLAlchemyError)),
        key=lambda kind: kind.__name__,
    )


@pytest.mark.parametrize("kind", errors_of_sqlalchemy())
def test_no_error_of_sqlalchemy_is_left_over(kind: Any) -> None:
    """Each leaves the store as an error of ours, without the statement's values."""
    error = kind.__new__(kind)
    if isinstance(error, StatementError):
        StatementError.__init__(error, "odd", "SELECT :secret", {"secret": "s3cr3t"}, driver_error("SQLITE_BUSY"))
    if isinstance(error, DBAPIError):
        error.connection_invalidated = False
    with pytest.raises(StoreError) as caught, translated():
        raise error
    assert "s3cr3t" not in str(caught.value)
    assert caught.value.__cause__ is not None


@pytest.mark.parametrize(
    ("error", "kind"),
    [
        (DBAPIError("", {}, driver_error(None), connection_invalidated=True), StoreUnavailable),
        (sqlalchemy.exc.TimeoutError(), StoreUnavailable),
        (OSError(errno.EMFILE, "Too many open files"), StoreUnavailable),
        (TimeoutError(), StoreUnavailable),
        (PermissionError(errno.EACCES, "Permission denied", "/x"), StoreError),
        (FileNotFoundError(), StoreError),
        (OverflowError("int too large"), Unstorable),
        (StatementError("", "", {}, ValueError("nan")), Unstorable),
        (driver_error(None, sqlite3.IntegrityError), Unstorable),
        (driver_error(None, sqlite3.ProgrammingError), StoreError),
    ],
)
def test_what_has_no_code_is_told_by_its_kind(error: Exception, kind: type[StoreError]) -> None:
    """The system, the pool, the driver itself, the value."""
    assert type(classify(error)) is kind


def test_our_own_errors_pass_as_they_are() -> None:
    """What the store says on purpose is not said again in other words."""
    said = LeaseLost("gone")
    assert classify(said) is said
    with pytest.raises(LeaseLost), translated():
        raise said


def test_the_cause_is_the_drivers_error() -> None:
    """SQLAlchemy's error keeps the statement's values: it is not passed on."""
    orig = driver_error("SQLITE_FULL")
    with pytest.raises(StoreError) as caught, translated():
        raise wrapped(orig)
    assert caught.value.__cause__ is orig
    assert str(pickle.loads(pickle.dumps(caught.value))) == str(caught.value)
