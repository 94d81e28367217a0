from __future__ import annotations

from pathlib import Path

import pytest
from sqlalchemy import URL, create_engine, make_url

from tarry.errors import StoreError
from tarry.store import addresses, open_store
from tarry.store.addresses import database_at
from tarry.store.mariadb import MariaDb
from tarry.store.postgres import Postgres
from tarry.store.sqlite import SqliteFile


def named_by(store: object) -> Path | None:
    """The file behind a store's address."""
    found = database_at(store)
    assert found is None or isinstance(found, SqliteFile)
    return found and found.path


def test_a_url_names_a_file() -> None:
    """By text, by URL, by engine; and a database in memory has none."""
    engine = create_engine("sqlite:////data/jobs.db")
    assert named_by("sqlite:////data/jobs.db") == Path("/data/jobs.db")
    assert named_by(make_url("sqlite+pysqlite:///jobs.db")) == Path("jobs.db").absolute()
    assert named_by(engine) == Path("/data/jobs.db")
    assert [named_by(url) for url in ("sqlite://", "sqlite:///", "sqlite:///:memory:")] == [None] * 3


@pytest.mark.parametrize(
    ("url", "kind", "driver"),
    [
        ("postgresql://user:s3cr3t@db.example.com/jobs", Postgres, "postgresql+psycopg"),
        ("postgresql+psycopg://user:s3cr3t@db.example.com/jobs", Postgres, "postgresql+psycopg"),
        ("mysql://user:s3cr3t@db.example.com/jobs", MariaDb, "mysql+pymysql"),
        ("mariadb://user:s3cr3t@db.example.com/jobs", MariaDb, "mysql+pymysql"),
        ("mariadb+pymysql://user:s3cr3t@db.example.com/jobs", MariaDb, "mysql+pymysql"),
    ],
)
def test_a_url_names_a_server(url: str, kind: type[Postgres | MariaDb], driver: str) -> None:
    """By text, by URL or by engine, with the password, whatever driver SQLAlchemy would take by itself."""
    for store in (url, make_url(url)):
        found = database_at(store)
        assert isinstance(found, kind)
        assert found.url == make_url(url).set(drivername=driver)


def test_an_engine_gives_its_url() -> None:
    """Its password goes along; its pool and its transactions stay its own."""
    url = URL.create("postgresql+psycopg", "user", "s3cr3t", "db.example.com", database="jobs")
    found = database_at(create_engine(url))
    assert isinstance(found, Postgres)
    assert found.url == url


def test_a_driver_that_is_missing_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    """With the extra that brings it, and without the password."""

    def missing(name: str) -> None:
        raise ModuleNotFoundError(name)

    monkeypatch.setattr(addresses, "import_module", missing)
    with pytest.raises(StoreError, match=r"postgresql needs the driver psycopg: pip install 'tarry\[postgres\]'"):
        open_store("postgresql://user:s3cr3t@db.example.com/jobs")
    with pytest.raises(StoreError, match=r"mysql needs the driver pymysql: pip install 'tarry\[mysql\]'"):
        open_store("mysql://user:s3cr3t@db.example.com/jobs")


@pytest.mark.parametrize(
    ("url", "problem"),
    [
        ("jobs.db", "this is no database URL"),
        ("", "this is no database URL"),
        ("postgresql+asyncpg://user:s3cr3t@db.example.com/jobs", "no store for the driver 'postgresql\\+asyncpg'"),
        ("mysql+mysqldb://user:s3cr3t@db.example.com/jobs", "no store for the driver 'mysql\\+mysqldb'"),
        ("sqlite+aiosqlite:///jobs.db", "no store for the driver 'sqlite\\+aiosqlite'"),
        ("nonsense://user:s3cr3t@db.example.com/jobs", "no store for 'nonsense' databases"),
        ("mysql://user:s3cr3t@db.example.com:port/jobs", "this is no database URL"),
        ("mysql://user:s3cr3t@db.example.com", "names no database"),
        ("sqlite:///jobs.db?mode=ro", "more than a path"),
        ("sqlite:///file:jobs.db", "more than a path"),
        ("sqlite:///a\x00b", "more than a path"),
    ],
)
def test_a_url_without_a_store_behind_it_is_refused(url: str, problem: str) -> None:
    """At once, with an example of a right one, and without the password."""
    with pytest.raises(StoreError, match=problem) as caught:
        open_store(url)
    assert "s3cr3t" not in str(caught.value)
