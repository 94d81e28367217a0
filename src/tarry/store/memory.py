"""`MemoryStore`: the same SQL on a private database in memory."""

from __future__ import annotations

from tarry.store.sql import SqlStore
from tarry.store.sqlite import SqliteMemory


class MemoryStore(SqlStore):
    """Keeps jobs for as long as this object lives, through `close` and a new `open`.

    For tests, and for waits that may be forgotten. Leases alone tell who is alive.
    """

    def __init__(self, *, prefix: str = "tarry_") -> None:
        super().__init__(SqliteMemory(), prefix=prefix)
