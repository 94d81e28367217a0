"""`--db`: a file path or a database URL."""

from __future__ import annotations

import re
from pathlib import Path

from tarry.cli.exits import DatabaseError, UsageError

DEFAULT = "tarry.db"

_URL = re.compile(r"[A-Za-z][A-Za-z0-9+.\-]*://")
_SQLITE_FILE = re.compile(r"sqlite(?:\+\w+)?:///(.+)")
_PASSWORD = re.compile(r"(://[^:/@]*:).*@")
# Drivers take it from the query as well: password, sslpassword, passwd.
_IN_QUERY = re.compile(r"([?&][^=&]*pass[^=&]*=)[^&]*", re.IGNORECASE)


def url_of(db: str, *, must_exist: bool = False) -> str:
    """The database URL that `--db` names.

    With `must_exist`, a database file that is not there is an error: looking
    at jobs must not leave an empty database behind.
    """
    if not db.strip() or "\x00" in db:
        raise UsageError("--db: give a file path or a database URL")
    if _URL.match(db):
        named = _SQLITE_FILE.fullmatch(db)
        _check(None if named is None else Path(named[1].partition("?")[0]), must_exist=must_exist)
        return db
    if "?" in db or "#" in db:
        raise UsageError("--db: a path with ? or # in it cannot be written as a database URL; choose another name")
    path = Path(db).expanduser()
    _check(path, must_exist=must_exist)
    return f"sqlite:///{path.absolute()}"


def shown(db: str) -> str:
    """The argument as it may be printed: without a password."""
    return _IN_QUERY.sub(r"\1***", _PASSWORD.sub(r"\1***@", db))


def _check(path: Path | None, *, must_exist: bool) -> None:
    if path is None:
        return
    if path.is_dir():
        raise DatabaseError(f"--db: {path} is a folder; name a file in it")
    if not path.absolute().parent.is_dir():
        raise DatabaseError(f"--db: the folder {path.absolute().parent} does not exist")
    if must_exist and not path.exists():
        raise DatabaseError(f"--db: there is no database at {path}; `tarry await` makes one")
