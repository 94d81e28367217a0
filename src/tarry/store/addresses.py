"""Which database a URL or an engine names.

Of an engine only its URL is used: how transactions begin is not for an engine that others share.
"""

from __future__ import annotations

from importlib import import_module
from pathlib import Path

from sqlalchemy import URL, Engine, make_url
from sqlalchemy.exc import ArgumentError

from tarry.errors import StoreError
from tarry.store.database import Database
from tarry.store.sqlite import SqliteFile

_EXAMPLE = "such as 'sqlite:///tarry.db' or 'postgresql://user:password@host/database'"

# Name in a URL, driver, extra.
_SERVERS = {"postgresql": ("psycopg", "postgres"), "mysql": ("pymysql", "mysql"), "mariadb": ("pymysql", "mysql")}


def database_at(store: str | URL | Engine) -> Database | None:
    """The database that a URL or an engine names, not opened yet; None for one in memory.

    Raises `StoreError` for what no store is for, and where the driver is not installed.
    """
    url = store.url if isinstance(store, Engine) else _url(store)
    backend = url.get_backend_name()
    if backend in _SERVERS:
        return _server(url, *_SERVERS[backend])
    if backend != "sqlite":
        raise StoreError(f"no store for {backend!r} databases: name one of SQLite, PostgreSQL or MariaDB, {_EXAMPLE}")
    path = _sqlite_path(url)
    return None if path is None else SqliteFile(path)


def _server(url: URL, driver: str, extra: str) -> Database:
    backend, _, named = url.drivername.partition("+")
    if named not in {"", driver}:
        raise StoreError(f"no store for the driver {url.drivername!r}: write '{backend}+{driver}://…'")
    try:
        import_module(driver)
    except ImportError as error:
        raise StoreError(f"{backend} needs the driver {driver}: pip install 'tarry[{extra}]'") from error
    if driver == "psycopg":
        from tarry.store.postgres import Postgres

        return Postgres(url)
    if not url.database:
        raise StoreError(f"the database URL names no database: write '{backend}://user:password@host/database'")
    from tarry.store.mariadb import MariaDb

    return MariaDb(url)


def _sqlite_path(url: URL) -> Path | None:
    if "+" in url.drivername and url.get_driver_name() != "pysqlite":
        raise StoreError(f"no store for the driver {url.drivername!r}: write a plain 'sqlite:///…'")
    if url.database in {None, "", ":memory:"}:
        return None
    name = str(url.database)
    if url.query or name.startswith("file:") or "\x00" in name:
        raise StoreError("the database URL holds more than a path: write a plain one, such as 'sqlite:///tarry.db'")
    return Path(name)


def _url(text: str | URL) -> URL:
    try:
        return make_url(text)
    except (ArgumentError, ValueError):
        # The text may hold a password: it is not repeated.
        raise StoreError(f"this is no database URL: write one {_EXAMPLE}") from None
