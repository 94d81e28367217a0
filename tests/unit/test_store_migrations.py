"""Schema versions: applied in order, all or nothing."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from sqlalchemy import Connection, inspect

from tarry.errors import StoreError
from tarry.store.migrations import STEPS, migrate, version
from tarry.store.sqlite import SqliteMemory
from tarry.store.tables import Tables

TABLES = Tables("t_")


def add_column(connection: Connection, tables: Tables) -> None:
    """A step as a later version may have one."""
    connection.exec_driver_sql(f"ALTER TABLE {tables.prefix}job ADD COLUMN colour TEXT")


def fail(_connection: Connection, _tables: Tables) -> None:
    """A step that is killed half-way."""
    raise StoreError("killed")


@pytest.fixture
def database() -> Iterator[SqliteMemory]:
    made = SqliteMemory()
    yield made
    made.close()


def found(database: SqliteMemory) -> int:
    """The version in the database."""
    with database.read() as connection:
        return version(connection, TABLES)


def test_a_new_database_gets_the_newest_version(database: SqliteMemory) -> None:
    """And the tables of that version are those the statements are built for."""
    with database.write() as connection:
        migrate(connection, TABLES)
        migrate(connection, TABLES)
        names = inspect(connection).get_table_names()
        for name in names:
            columns = {column["name"] for column in inspect(connection).get_columns(name)}
            assert columns == set(TABLES.metadata.tables[name].c.keys())
    assert set(names) == set(TABLES.metadata.tables)
    assert found(database) == max(STEPS)


def test_steps_follow_each_other(database: SqliteMemory) -> None:
    """An older database gets what it lacks, and nothing twice."""
    with database.write() as connection:
        migrate(connection, TABLES)
    with database.write() as connection:
        migrate(connection, TABLES, {**STEPS, 2: add_column})
        migrate(connection, TABLES, {**STEPS, 2: add_column})
        assert "colour" in {column["name"] for column in inspect(connection).get_columns("t_job")}
    assert found(database) == 2


def test_half_a_migration_is_none(database: SqliteMemory) -> None:
    """Interrupted, the database is as it was."""
    with database.write() as connection:
        migrate(connection, TABLES)
    with pytest.raises(StoreError, match="killed"), database.write() as connection:
        migrate(connection, TABLES, {**STEPS, 2: add_column, 3: fail})
    assert found(database) == 1
    with database.read() as connection:
        assert "colour" not in {column["name"] for column in inspect(connection).get_columns("t_job")}


def test_a_newer_database_is_left_alone(database: SqliteMemory) -> None:
    """An older Tarry says so, and changes nothing."""
    with database.write() as connection:
        migrate(connection, TABLES, {**STEPS, 2: add_column})
    with pytest.raises(StoreError, match=r"t_\* have schema version 2"), database.write() as connection:
        migrate(connection, TABLES)
    assert found(database) == 2


def test_only_jobs_that_want_something_are_indexed(database: SqliteMemory) -> None:
    """Sleeping jobs weigh nothing in the indexes that are searched every second."""
    with database.write() as connection:
        migrate(connection, TABLES)
        made = dict(
            connection.exec_driver_sql(
                "SELECT name, sql FROM sqlite_master WHERE type = 'index' AND sql > ''"
            ).fetchall()
        )
    for name in ("wake", "owner"):
        assert made[f"t_job_{name}"].endswith(f"WHERE {name} IS NOT NULL")
    assert "UNIQUE" in made["t_job_key"]
    never = {"due", "step", "polls", "reserved", "polled_at", "state"}
    assert not any(column in sql for column in never for sql in made.values())
