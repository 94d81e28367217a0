"""Version 1: the first tables.

As long as there is no second version, `Tables` is what version 1 looks like.
"""

from __future__ import annotations

from sqlalchemy import Connection, insert, select

from tarry.store.tables import Tables

VERSION = "schema"
"""The row of the table `meta` that names the version."""


def upgrade(connection: Connection, tables: Tables) -> None:
    """Create all tables and indexes, first the one that says whose the others are."""
    tables.meta.create(connection, checkfirst=True)
    if connection.scalar(select(tables.meta.c.value).where(tables.meta.c.name == VERSION)) is None:
        connection.execute(insert(tables.meta).values(name=VERSION, value="0"))
    tables.metadata.create_all(connection)
