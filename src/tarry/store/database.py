"""What a store needs of a database: transactions, and to know who is alive.

`sqlite` holds the databases in a file and in memory, `servers` those behind a network.
"""

from __future__ import annotations

from collections.abc import Callable
from contextlib import AbstractContextManager
from typing import Literal, Protocol, TypeAlias

from sqlalchemy import ColumnElement, Connection

from tarry.store.locks import Locks

Dialect: TypeAlias = Literal["sqlite", "postgresql", "mysql"]
"""Whose SQL it speaks; MariaDB speaks MySQL's."""


class Database(Protocol):
    """Transactions, and locks or a clock that tell who is alive."""

    dialect: Dialect
    blocking: bool
    locks: Locks
    clock: ColumnElement[int] | None
    """The database's own clock in SQL, in microseconds: leases of processes on many machines are judged by it.
    None where all processes share the clock of one machine: then the instants that are passed are used.
    """

    def open(self) -> bool:
        """Connect; False when it was open already."""
        ...

    def close(self) -> None:
        """Give back connections and locks."""
        ...

    def write(self) -> AbstractContextManager[Connection]:
        """One transaction, committed at its end. Each of its statements sees what was committed before the statement."""
        ...

    def read(self) -> AbstractContextManager[Connection]:
        """One transaction that sees one state of the database and cannot write."""
        ...

    def alone(self, connection: Connection, name: str) -> AbstractContextManager[None]:
        """Keep every other process out of the block of this name, to the end of the block or of the transaction."""
        ...

    def version(self) -> int:
        """A number that is another one after each commit, whoever made it; cheap to ask for."""
        ...

    def tell(self, connection: Connection, name: str) -> None:
        """When this transaction is committed, let those hear of it who listen to the name in other processes."""
        ...

    def listen(self, name: str, ring: Callable[[], object]) -> Callable[[], None] | None:
        """Call `ring`, from any thread, for what others tell under this name; what ends that. None where nobody can hear."""
        ...


class Silent:
    """A database that has no way to tell."""

    def tell(self, connection: Connection, name: str) -> None:
        """Nothing to do: the others look."""

    def listen(self, name: str, ring: Callable[[], object]) -> Callable[[], None] | None:  # noqa: ARG002 - as it says
        """Nothing is ever heard."""
        return None
