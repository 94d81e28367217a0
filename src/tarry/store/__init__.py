"""Stores: what keeps jobs between two polls, and over a crash."""

from __future__ import annotations

from sqlalchemy import URL, Engine

from tarry.errors import StoreError
from tarry.ports import Store
from tarry.store.addresses import database_at
from tarry.store.memory import MemoryStore
from tarry.store.sql import SqlStore

__all__ = ["MemoryStore", "SqlStore", "open_store"]


def open_store(store: str | URL | Engine | Store, *, prefix: str = "tarry_") -> Store:
    """The store that was asked for, not opened yet: by URL, by engine, or as it is.

    `sqlite://` is a `MemoryStore`. Raises `StoreError` for anything else.
    """
    if isinstance(store, str | URL):
        database = database_at(store)
        return MemoryStore(prefix=prefix) if database is None else SqlStore(database, prefix=prefix)
    if isinstance(store, Engine):
        return SqlStore(store, prefix=prefix)
    if hasattr(store, "checkpoint"):
        return store
    raise StoreError(f"a store is a database URL, a SQLAlchemy Engine or a Store, not {type(store).__name__}")
