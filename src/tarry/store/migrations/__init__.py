"""The schema's versions: one file each, applied in order, all in one transaction.

One process migrates at a time, and the others find it done. Killed half-way, nothing has
happened; but for MariaDB, which commits each table by itself: there the version is written last,
and the next process makes what is missing.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping

from sqlalchemy import Connection, inspect, select, update

from tarry.errors import StoreError
from tarry.store.migrations import v1
from tarry.store.migrations.v1 import VERSION
from tarry.store.tables import Tables

Step = Callable[[Connection, Tables], None]

STEPS: Mapping[int, Step] = {1: v1.upgrade}


def migrate(connection: Connection, tables: Tables, steps: Mapping[int, Step] = STEPS) -> None:
    """Bring the tables to the newest version; `StoreError` when they are newer still, or not ours."""
    newest = max(steps)
    found = version(connection, tables)
    if found > newest:
        raise StoreError(
            f"the tables {tables.prefix}* have schema version {found}, this Tarry knows up to {newest}: "
            "install the Tarry that wrote them, or a newer one"
        )
    for number in range(found + 1, newest + 1):
        steps[number](connection, tables)
    if found < newest:
        connection.execute(update(tables.meta).where(tables.meta.c.name == VERSION).values(value=str(newest)))


def version(connection: Connection, tables: Tables) -> int:
    """The schema version of the tables in the database; 0 when there are none."""
    present = {name for name in inspect(connection).get_table_names() if name.startswith(tables.prefix)}
    if tables.meta.name not in present:
        strangers = present & set(tables.metadata.tables)
        if strangers:
            raise StoreError(
                f"table {min(strangers)} exists, but {tables.meta.name} does not: it belongs to something else, "
                "or the database is damaged; choose another prefix, or restore a backup"
            )
        return 0
    value = connection.scalar(select(tables.meta.c.value).where(tables.meta.c.name == VERSION))
    if value is None and present <= {tables.meta.name}:
        return 0
    if value is None or not value.isdecimal():
        raise StoreError(f"{tables.meta.name} names no schema version: the database is damaged; restore a backup")
    return int(value)
