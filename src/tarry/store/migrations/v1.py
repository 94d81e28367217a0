"""Version 1: the first tables.

As long as there is no second version, `Tables` is what version 1 looks like.
"""

from __future__ import annotations

from sqlalchemy import Connection

from tarry.store.tables import Tables


def upgrade(connection: Connection, tables: Tables) -> None:
    """Create all tables and indexes."""
    tables.metadata.create_all(connection)
