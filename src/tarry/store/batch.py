"""Many rows in one statement, because a statement costs more than a row does.

The rows go along as a table `given`. SQLite and MariaDB take it as plain parameters: nothing has to be quoted or
parsed, and the driver refuses a value that cannot be stored as it does anywhere. PostgreSQL takes it as one
JSON text a column, which costs a tenth of so many parameters there; by rows, each would repeat the names.

A statement is compiled once, and prepared for few numbers of rows: what is missing to the next power of two is
filled up with rows of NULL, which match nothing.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from itertools import chain
from typing import Any, TypeAlias

from sqlalchemy import BigInteger, Connection, CursorResult, Dialect, Integer, Table, column, text

from tarry.core.texts import plain_json_text

Values: TypeAlias = Callable[[str], Any]
"""The values of one row, by name."""

Make: TypeAlias = Callable[[Values], Any]
"""Builds a statement from the values of a row."""

Row: TypeAlias = tuple[Any, ...]
"""An id, then numbers, texts and None."""

MOST = 512
"""How many rows one statement takes."""

LARGEST = 1 << 20
"""How many characters of text the rows of one statement have, on a server; a row with more goes alone.

A server takes a statement of bounded length, for a bounded time, and one that is too long breaks the connection.
"""


class Batch:
    """One statement over rows with these names, whose types are those of `like`.

    `make` builds it from the values of a row, in a way that a row of NULL matches nothing. `usual` says how many of
    the names most rows end with, and what builds the statement for those: they go apart, which costs less.
    """

    def __init__(self, like: Table, names: Sequence[str], make: Make, *, usual: tuple[int, Make] | None = None) -> None:
        types = {name: like.c[name].type if name in like.c else BigInteger() for name in names}
        makes = dict([usual] if usual else []) | {len(names): make}
        self.forms = {size: _Given({name: types[name] for name in names[:size]}, of) for size, of in makes.items()}

    def count(self, connection: Connection, rows: Sequence[Row]) -> int:
        """Write; how many rows of the database were written."""
        return sum(result.rowcount for result in self._run(connection, rows))

    def numbers(self, connection: Connection, rows: Sequence[Row]) -> set[int]:
        """Read; the ids that were found."""
        return {number for result in self._run(connection, rows) for number in result.scalars()}

    def _run(self, connection: Connection, rows: Sequence[Row]) -> Iterator[CursorResult[Any]]:
        if len(rows) > 1 and connection.dialect.name != "sqlite":
            # Two that write the same rows in the same order do not wait for each other in a circle.
            rows = sorted(rows, key=_number)
        for size, form in self.forms.items():
            yield from form.run(connection, [row for row in rows if len(row) == size])


class _Given:
    """The statement with its rows as a table."""

    def __init__(self, types: Mapping[str, Any], make: Make) -> None:
        self._types = types
        self._make = make
        self._texts: dict[tuple[str, int], str] = {}

    def run(self, connection: Connection, rows: Sequence[Row]) -> Iterator[CursorResult[Any]]:
        for part in _parts(rows, None if connection.dialect.name == "sqlite" else LARGEST):
            size, values = self._parameters(connection.dialect, part)
            kind = (_speech(connection.dialect), size)
            sql = self._texts.get(kind)
            if sql is None:
                sql = self._texts[kind] = self._text(connection.dialect, size)
            # The text goes to the driver as it is: what SQLAlchemy does for each parameter costs more than the write.
            yield connection.exec_driver_sql(sql, values)

    def _parameters(self, dialect: Dialect, rows: Sequence[Row]) -> tuple[int, tuple[Any, ...]]:
        """For how many rows the statement is to be, and what goes with it."""
        if dialect.name == "postgresql":
            return 1, tuple(map(plain_json_text, zip(*rows, strict=True)))
        size = 1 << (len(rows) - 1).bit_length()
        return size, (*chain.from_iterable(rows), *(None,) * ((size - len(rows)) * len(self._types)))

    def _text(self, dialect: Dialect, size: int) -> str:
        given = text("ROWS").columns(*(column(name, kind) for name, kind in self._types.items())).subquery("given")
        made = self._make(lambda name: given.c[name])
        compiled = made.compile(dialect=dialect, compile_kwargs={"literal_binds": True})
        # Inside of the statement: SQLite's driver counts rows only for one that begins with what it does.
        return str(compiled).replace("ROWS", self._table(dialect, size))

    def _table(self, dialect: Dialect, size: int) -> str:
        kinds = {dialect.identifier_preparer.quote(name): _kind(of) for name, of in self._types.items()}
        if dialect.name == "postgresql":
            columns = ", ".join(f"CAST({name} AS {kind}) AS {name}" for name, kind in kinds.items())
            lists = ", ".join(["json_array_elements_text(%s)"] * len(kinds))
            return f"SELECT {columns} FROM ROWS FROM ({lists}) AS given({', '.join(kinds)})"  # noqa: S608 - our names
        mark = "?" if dialect.name == "sqlite" else "%s"
        row = f"{'ROW' if _speech(dialect) == 'mysql' else ''}({', '.join([mark] * len(kinds))})"
        return f"WITH given({', '.join(kinds)}) AS (VALUES {', '.join([row] * size)}) SELECT * FROM given"  # noqa: S608 - our names, and marks


def _parts(rows: Sequence[Row], largest: int | None) -> Iterator[Sequence[Row]]:
    """The rows in order, cut into what one statement takes."""
    start = taken = 0
    for place, row in enumerate(rows):
        length = 0 if largest is None else sum([len(value) for value in row if type(value) is str])
        if place - start == MOST or (largest is not None and place > start and taken + length > largest):
            yield rows[start:place]
            start, taken = place, 0
        taken += length
    if rows:
        yield rows[start:]


def _number(row: Row) -> int:
    return int(row[0])


def _kind(of: Any) -> str:
    return "bigint" if isinstance(of, Integer) else "text"


def _speech(dialect: Dialect) -> str:
    """The name of the dialect; MariaDB's own, where it is not MySQL's."""
    return "mariadb" if getattr(dialect, "is_mariadb", False) else dialect.name
