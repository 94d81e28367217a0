"""What a database says to somebody who is no worker of it, and the processes that work on it."""

from __future__ import annotations

import os
import subprocess
import time
from collections.abc import Callable
from functools import cache
from pathlib import Path
from typing import Any

from sqlalchemy import Engine, Select, create_engine, func, make_url, select, update
from sqlalchemy.exc import DBAPIError
from sqlalchemy.pool import NullPool

from tarry.store.tables import tables_under

TABLES = tables_under("tarry_")

# Measuring what a process covers that dies anyway would only slow its start.
ENVIRONMENT = {name: value for name, value in os.environ.items() if not name.startswith("COVERAGE_PROCESS")}


@cache
def engine_of(database: str) -> Engine:
    """Connections of our own, each closed after its use."""
    return create_engine(database, poolclass=NullPool)


def rows(database: str, query: Select[Any]) -> list[Any]:
    """What it answers; nothing before there are tables."""
    url = make_url(database)
    if url.get_backend_name() == "sqlite" and not Path(str(url.database)).exists():
        return []
    try:
        with engine_of(database).connect() as connection:
            return list(connection.execute(query))
    except DBAPIError:
        return []


def count(database: str, what: Any) -> int:
    """How many of a table's rows, or of a column's values, there are."""
    found = rows(database, select(func.count(what)))
    return int(found[0][0]) if found else 0


def workers(database: str) -> int:
    """How many workers have registered."""
    return count(database, TABLES.worker.c.id)


def end_leases(database: str) -> None:
    """The time passes that a database of many machines waits before it believes that a process was killed.

    Only where one worker at most is left, which declares nobody dead but others. On SQLite nothing is waited for.
    """
    if not database.startswith("sqlite"):
        with engine_of(database).begin() as connection:
            connection.execute(update(TABLES.worker).values(lease_until=1))


def wait_until(holds: Callable[[], bool], *processes: subprocess.Popen[str]) -> None:
    """Look every 10 ms, for a minute, while the processes live."""
    last = time.monotonic() + 60
    while not holds():
        assert time.monotonic() < last, "it did not happen within a minute"
        assert all(process.poll() is None for process in processes)
        time.sleep(0.01)
