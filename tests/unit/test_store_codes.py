from __future__ import annotations

import pytest
from psycopg import errors
from pymysql import err
from sqlalchemy.exc import DBAPIError

from tarry.errors import StoreError, StoreUnavailable
from tarry.store.faults import Duplicate, Unstorable, classify


def wrapped(error: Exception) -> DBAPIError:
    """As SQLAlchemy hands it on."""
    return DBAPIError("UPDATE", None, error)


@pytest.mark.parametrize(
    ("error", "kind", "told"),
    [
        (errors.SerializationFailure("s3cr3t"), StoreUnavailable, "busy or away (40001)"),
        (errors.DeadlockDetected("s3cr3t"), StoreUnavailable, "(40P01)"),
        (errors.QueryCanceled("s3cr3t"), StoreUnavailable, "(57014)"),
        (errors.LockNotAvailable("s3cr3t"), StoreUnavailable, "(55P03)"),
        (errors.AdminShutdown("s3cr3t"), StoreUnavailable, "(57P01)"),
        (errors.CannotConnectNow("s3cr3t"), StoreUnavailable, "(57P03)"),
        (errors.IdleInTransactionSessionTimeout("s3cr3t"), StoreUnavailable, "(25P03)"),
        (errors.ReadOnlySqlTransaction("s3cr3t"), StoreUnavailable, "name the primary (25006)"),
        (errors.TooManyConnections("s3cr3t"), StoreUnavailable, "no connection left"),
        (errors.DiskFull("s3cr3t"), StoreUnavailable, "make room"),
        (errors.OperationalError("s3cr3t"), StoreUnavailable, "not reached"),
        (errors.ConnectionTimeout("s3cr3t"), StoreUnavailable, "not reached"),
        (errors.UniqueViolation("s3cr3t"), Duplicate, "there already (23505)"),
        (errors.NotNullViolation("s3cr3t"), Unstorable, "(23502)"),
        (errors.NumericValueOutOfRange("s3cr3t"), Unstorable, "(22003)"),
        (errors.ProgramLimitExceeded("s3cr3t"), Unstorable, "(54000)"),
        (errors.DataError("s3cr3t"), Unstorable, "DataError"),
        (errors.UndefinedTable("s3cr3t"), StoreError, "let nothing else change them (42P01)"),
        (errors.InsufficientPrivilege("s3cr3t"), StoreError, "grant it the rights"),
        (errors.SyntaxError("s3cr3t"), StoreError, "(42601)"),
        (errors.ProgrammingError("s3cr3t"), StoreError, "ProgrammingError"),
        (err.OperationalError(1205, "s3cr3t"), StoreUnavailable, "(1205)"),
        (err.OperationalError(1213, "s3cr3t"), StoreUnavailable, "(1213)"),
        (err.OperationalError(2003, "s3cr3t"), StoreUnavailable, "(2003)"),
        (err.OperationalError(2013, "s3cr3t"), StoreUnavailable, "(2013)"),
        (err.OperationalError(1927, "s3cr3t"), StoreUnavailable, "(1927)"),
        (err.OperationalError(1040, "s3cr3t"), StoreUnavailable, "no connection left"),
        (err.InterfaceError(0, ""), StoreUnavailable, "broke"),
        (err.InternalError("Packet sequence number wrong"), StoreUnavailable, "broke"),
        (err.IntegrityError(1062, "s3cr3t"), Duplicate, "(1062)"),
        (err.DataError(1406, "s3cr3t"), Unstorable, "(1406)"),
        (err.OperationalError(1045, "s3cr3t"), StoreError, "user or the password (1045)"),
        (err.OperationalError(1049, "s3cr3t"), StoreError, "create it first (1049)"),
        (err.ProgrammingError(1146, "s3cr3t"), StoreError, "let nothing else change them (1146)"),
        (err.ProgrammingError(1064, "s3cr3t"), StoreError, "(1064)"),
    ],
)
def test_the_code_of_a_server_decides(error: Exception, kind: type[StoreError], told: str) -> None:
    """The code, never the words, which may hold what was to be stored."""
    found = classify(wrapped(error))
    assert type(found) is kind
    assert told in str(found)
    assert "s3cr3t" not in str(found)
