from __future__ import annotations

import inspect
from collections.abc import Iterator
from graphlib import CycleError
from typing import Any

import pytest
from sqlalchemy import Column, Table, Update, bindparam, update
from sqlalchemy.sql.visitors import iterate

from tarry.store import MemoryStore, statements
from tarry.store.assigning import assigned
from tarry.store.tables import Tables

TABLES = Tables()


def updates() -> Iterator[Update]:
    """Every UPDATE that a store has, whether it is made for one row or for many."""
    store = MemoryStore()
    parts = (store._sql, store._workers, store._commands, store.deliveries, store._backlog, store._retention)
    for part in parts:
        yield from (value for value in vars(part).values() if isinstance(value, Update))

    def new(name: str) -> Any:
        return bindparam(f"p_{name}")

    for name in ("reserve", "go_on", "checkpoint", "release", "isolate", "_claim"):
        yield getattr(statements, name)(TABLES.job, new)


def assignments(statement: Update) -> Iterator[tuple[str, set[str]]]:
    """What is assigned, from left to right, with the columns of the same table that the value is made of."""
    # One SQLAlchemy keeps pairs, the other a mapping and a mark.
    pairs = getattr(statement, "_ordered_values", None) or dict(statement._values or {}).items()
    assert getattr(statement, "_maintain_values_ordering", True), f"{statement} is not made by `assigned`"
    for column, value in pairs:
        parts = iterate(value) if hasattr(value, "get_children") else ()
        yield column.name, {part.name for part in parts if isinstance(part, Column) and part.table is statement.table}


def test_no_value_is_made_of_what_was_assigned_before_it() -> None:
    """MySQL goes from left to right and would read the new value; the others read the old one."""
    found = list(updates())
    assert len(found) > 15
    for statement in found:
        before: set[str] = set()
        for name, read in assignments(statement):
            assert not read & before, f"{statement}: {name} reads {read & before}"
            before.add(name)


def test_an_order_that_cannot_be_is_an_error() -> None:
    """Two columns that change places have no order."""
    job: Table = TABLES.job
    with pytest.raises(CycleError):
        assigned(update(job), {"polls": job.c.fence, "fence": job.c.polls})


def test_every_statement_on_rows_is_looked_at() -> None:
    """One that is added is one of those above."""
    made = {
        name
        for name, function in inspect.getmembers(statements, inspect.isfunction)
        if inspect.signature(function).return_annotation == "Update" and "new" in inspect.signature(function).parameters
    }
    assert made == {"reserve", "go_on", "checkpoint", "release", "isolate", "_claim"}
