"""What waits for a worker: the jobs of a namespace that nobody holds, by when they want an owner.

One look is one walk along the index on `wake`, so that it costs as much as it
finds, however many jobs sleep. A row that cannot be read is reported once and
passed by; the walk goes on behind it.
"""

from __future__ import annotations

import logging
from collections.abc import Iterator, Sequence
from typing import Any

from sqlalchemy import and_, bindparam, func, or_, select

from tarry.errors import CheckpointError
from tarry.ports import JobRow, Place
from tarry.store.database import Database
from tarry.store.rows import fits, job_row
from tarry.store.statements import Statements, p
from tarry.store.tables import Tables
from tarry.words import Instant

log = logging.getLogger("tarry.store")


class Backlog:
    """Looks at the jobs that want an owner."""

    def __init__(self, database: Database, tables: Tables, sql: Statements) -> None:
        self._database = database
        self._reported: dict[int, int] = {}
        job = tables.job
        mine = job.c.namespace == p(job.c.namespace)
        after = bindparam("p_after_wake", type_=job.c.wake.type)
        # The first comparison alone would do for the index, the second alone for the answer.
        past = and_(job.c.wake >= after, or_(job.c.wake > after, job.c.id > bindparam("p_after_id")))
        self.due: Any = (
            sql.whole.where(job.c.wake <= bindparam("p_until"), past, mine)
            .order_by(job.c.wake, job.c.id)
            .limit(bindparam("p_limit"))
        )
        # Wrapped, because SQLite would take the index that has the namespace first, and walk over all its jobs.
        named = func.coalesce(job.c.namespace, "") == p(job.c.namespace)
        self.held: Any = select(func.count()).where(named, job.c.owner.is_not(None))

    def look(self, namespace: str, until: Instant, after: Place, limit: int) -> tuple[list[JobRow], Place | None]:
        """At most `limit` jobs past the place, and the place to go on after; None when there are no more."""
        if not fits(namespace):
            return [], None
        params = {
            "p_namespace": namespace,
            "p_until": until,
            "p_after_wake": after[0],
            "p_after_id": after[1],
            "p_limit": limit,
        }
        with self._database.read() as connection:
            found = connection.execute(self.due, params).all()
        place = (found[-1].wake, found[-1].id) if len(found) == limit else None
        return list(self._readable(found)), place

    def count_held(self, namespace: str) -> int:
        """How many jobs some worker holds."""
        with self._database.read() as connection:
            return int(connection.scalar(self.held, {"p_namespace": namespace}) or 0)

    def _readable(self, found: Sequence[Any]) -> Iterator[JobRow]:
        for columns in found:
            try:
                yield job_row(columns)
            except CheckpointError as error:
                if self._reported.get(columns.id) != columns.step:
                    self._reported[columns.id] = columns.step
                    log.error("%s", error)  # noqa: TRY400 - the message is the whole of it
