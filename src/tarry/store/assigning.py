"""UPDATE, with an order of assignments that means the same everywhere.

In standard SQL every value is worked out from the row as it was. MySQL goes from left to right instead, and reads
what it has just assigned. So whatever reads a column comes before what assigns it.
"""

from __future__ import annotations

from collections.abc import Mapping
from graphlib import TopologicalSorter
from typing import Any

from sqlalchemy import Column, ColumnElement, Table, Update
from sqlalchemy.sql.visitors import iterate


def assigned(statement: Update, values: Mapping[str, Any]) -> Update:
    """The statement with these values, in an order in which none reads a column assigned before it.

    Raises `graphlib.CycleError` where there is no such order.
    """
    table = statement.table
    assert isinstance(table, Table)  # noqa: S101 - every statement here updates a table of ours
    # Whoever reads a column goes first: the column's own assignment follows them.
    order = TopologicalSorter({name: set[str]() for name in values})
    for name, value in values.items():
        for other in (_read(value, table) & values.keys()) - {name}:
            order.add(other, name)
    return statement.ordered_values(*((table.c[name], values[name]) for name in order.static_order()))


def _read(value: Any, table: Table) -> set[str]:
    """The columns of the table that the value is worked out from."""
    if not isinstance(value, ColumnElement):
        return set()
    return {part.name for part in iterate(value) if isinstance(part, Column) and part.table is table}
