"""What a doctor says."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from enum import StrEnum
from typing import Any

from sqlalchemy import Connection, func, select

from tarry.store.locks import Locks
from tarry.store.tables import Tables
from tarry.words import Instant


class Level(StrEnum):
    """How bad it is."""

    OK = "ok"
    NOTE = "note"
    """Worth knowing; nothing has to be done."""
    WARNING = "warning"
    """Weaker than it could be, or somebody should look."""
    ERROR = "error"
    """A promise does not hold, or will not."""


@dataclass(frozen=True, slots=True)
class Finding:
    """One thing that was looked at: its name, how bad it is, and words that say what to do."""

    name: str
    level: Level
    text: str


@dataclass(frozen=True, slots=True)
class Patient:
    """What is looked at: a connection that cannot write, the tables, the locks of workers, and what time it is."""

    connection: Connection
    tables: Tables
    locks: Locks
    now: Instant

    def number(self, statement: Any) -> int:
        """A number that the database knows."""
        return int(self.connection.scalar(statement) or 0)

    def jobs(self, *conditions: Any) -> tuple[int, str]:
        """How many jobs are so, and which, in words: `2 jobs ('orders', 'customers')`."""
        job = self.tables.job
        number = self.number(select(func.count()).select_from(job).where(*conditions))
        first = select(job.c.key).where(*conditions).order_by(job.c.id).limit(_NAMED)
        return number, named(number, list(self.connection.scalars(first)) if number else [])


Check = Callable[[Patient], Iterator[Finding]]
"""Looks at one thing; says nothing where there is nothing to say."""

_NAMED = 3


def named(number: int, keys: Sequence[object]) -> str:
    """`2 jobs ('orders', 'customers')`; of many the first few."""
    some = ", ".join(map(repr, keys)) + (", …" if number > len(keys) else "")
    return f"{number} job{'' if number == 1 else 's'} ({some})"
