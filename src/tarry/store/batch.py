"""Many rows in one statement, because a statement costs more than a row does.

The rows go along as a table `given`, made of plain parameters: nothing has to be
quoted or parsed, and the driver refuses a value that cannot be stored as it does anywhere.
A statement is compiled once, and prepared for few numbers of rows: what is missing to
the next power of two is filled up with rows of NULL, which match nothing.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from itertools import chain
from typing import Any, TypeAlias

from sqlalchemy import BigInteger, Connection, CursorResult, Dialect, Table, bindparam, column, null, text

Values: TypeAlias = Callable[[str], Any]
"""The values of one row, by name: parameters of a statement, or columns of a table that holds many."""

Row: TypeAlias = tuple[str | int | None, ...]

MOST = 512
"""How many rows one statement takes."""


class Batch:
    """One statement over rows with these names, whose types are those of `like`.

    `make` builds it from the values of a row, in a way that a row of NULL matches nothing. The last ones of the
    names, as many as are `rare`, mostly stand for None: rows without them go apart, which costs less.
    """

    def __init__(self, like: Table, names: Sequence[str], make: Callable[[Values], Any], *, rare: int = 0) -> None:
        types = {name: like.c[name].type if name in like.c else BigInteger() for name in names}
        self._types = types
        self._make = make
        self._rare = (None,) * rare
        self._whole = _Given(types, make)
        self._short = _Given({name: types[name] for name in names[: len(names) - rare]}, make)
        self._single: Any = None
        self._used: set[str] = set()

    def count(self, connection: Connection, rows: Sequence[Row]) -> int:
        """Write; how many rows of the database were written."""
        return sum(result.rowcount for result in self._run(connection, rows))

    def numbers(self, connection: Connection, rows: Sequence[Row]) -> set[int]:
        """Read; the ids that were found."""
        return {number for result in self._run(connection, rows) for number in result.scalars()}

    def _run(self, connection: Connection, rows: Sequence[Row]) -> Iterator[CursorResult[Any]]:
        if connection.dialect.name != "sqlite":
            yield from (self._alone(connection, row) for row in rows)
            return
        rare = len(self._rare)
        if rare:
            short = [row[:-rare] for row in rows if row[-rare:] == self._rare]
            yield from self._short.run(connection, short)
            rows = [row for row in rows if row[-rare:] != self._rare] if len(short) < len(rows) else ()
        yield from self._whole.run(connection, rows)

    def _alone(self, connection: Connection, row: Row) -> CursorResult[Any]:
        if self._single is None:
            self._single = self._make(self._parameter)
        values = zip(self._types, row, strict=True)
        return connection.execute(self._single, {f"p_{name}": value for name, value in values if name in self._used})

    def _parameter(self, name: str) -> Any:
        self._used.add(name)
        return bindparam(f"p_{name}", type_=self._types[name])


class _Given:
    """The statement with its rows as a table; a name that is not in the table stands for NULL."""

    def __init__(self, types: Mapping[str, Any], make: Callable[[Values], Any]) -> None:
        self._types = types
        self._make = make
        self._texts: dict[tuple[str, int], str] = {}

    def run(self, connection: Connection, rows: Sequence[Row]) -> Iterator[CursorResult[Any]]:
        for start in range(0, len(rows), MOST):
            part = rows[start : start + MOST]
            size = 1 << (len(part) - 1).bit_length()
            kind = (connection.dialect.name, size)
            sql = self._texts.get(kind)
            if sql is None:
                sql = self._texts[kind] = self._text(connection.dialect, size)
            values = (*chain.from_iterable(part), *(None,) * ((size - len(part)) * len(self._types)))
            # The text goes to the driver as it is: what SQLAlchemy does for each parameter costs more than the write.
            yield connection.exec_driver_sql(sql, values)

    def _text(self, dialect: Dialect, size: int) -> str:
        given = text("ROWS").columns(*(column(name, kind) for name, kind in self._types.items())).subquery("given")
        made = self._make(lambda name: given.c[name] if name in self._types else null())
        compiled = made.compile(dialect=dialect, compile_kwargs={"literal_binds": True})
        names = ", ".join(self._types)
        row = f"({', '.join('?' * len(self._types))})"
        # Inside of the statement: the driver counts rows only for one that begins with what it does.
        rows = f"WITH given({names}) AS (VALUES {', '.join([row] * size)}) SELECT * FROM given"  # noqa: S608 - our names, and "?"
        return str(compiled).replace("ROWS", rows)
