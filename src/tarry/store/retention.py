"""How long finished jobs are kept: until somebody prunes them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from sqlalchemy import Connection, and_, bindparam, delete, exists, or_, select

from tarry.ports import Place
from tarry.store.database import Database
from tarry.store.rows import fits
from tarry.store.statements import KEEP_EVENTS, by_key_alone, ids, p
from tarry.store.tables import Tables
from tarry.words import DeliveryKind, DeliveryState, Instant

MOST_ROWS = 500
"""How many rows are deleted in one transaction, unless a single job has more: nobody waits for the lock for long."""

_BESIDE = 1 + len(DeliveryKind)


class Retention:
    """Forgets finished jobs, their events, and the specs that no job uses any more."""

    def __init__(self, database: Database, tables: Tables) -> None:
        self._database = database
        job, event, spec, outbox = tables.job, tables.event, tables.spec, tables.outbox
        after = bindparam("p_after_at", type_=job.c.finished_at.type)
        # The first comparison alone would do for the index, the second alone for the answer.
        past = and_(job.c.finished_at >= after, or_(job.c.finished_at > after, job.c.id > bindparam("p_after_id")))
        self.page: Any = (
            select(job.c.id, job.c.finished_at, job.c.event_seq)
            .where(job.c.namespace == p(job.c.namespace), job.c.finished_at < bindparam("p_before"), past)
            .order_by(job.c.finished_at, job.c.id)
            .limit(bindparam("p_limit"))
        )
        # A reset of a job, or another try of a delivery, waits for us or is found done.
        over = (job.c.outcome.is_not(None), job.c.finished_at < bindparam("p_before"))
        self._over = by_key_alone(
            select(job.c.id, job.c.spec).where(job.c.id.in_(ids()), *over).order_by(job.c.id).with_for_update(), job
        )
        self._owed = select(outbox.c.job, outbox.c.state).where(outbox.c.job.in_(ids())).with_for_update()
        self._forget = (
            delete(event).where(event.c.job.in_(ids())),
            delete(outbox).where(outbox.c.job.in_(ids())),
            delete(job).where(job.c.id.in_(ids())),
        )
        # Whoever adds a job holds its spec until that job is seen: only then is it asked which are still used.
        self._lock_specs = (
            select(spec.c.hash).where(spec.c.hash.in_(ids("p_hashes"))).order_by(spec.c.hash).with_for_update()
        )
        used = exists().where(job.c.spec == spec.c.hash)
        self._forget_specs = delete(spec).where(spec.c.hash.in_(ids("p_hashes")), ~used)

    def prune(self, namespace: str, before: Instant, after: Place, limit: int) -> tuple[int, Place | None]:
        """Forget some of those that finished before then, in the order in which they did, past the place.

        One that still owes a delivery is spared. What is to be forgotten is looked for without the lock.
        """
        if not fits(namespace):
            return 0, None
        params = {"p_namespace": namespace, "p_before": before, "p_limit": limit}
        with self._database.read() as connection:
            found = connection.execute(self.page, {**params, "p_after_at": after[0], "p_after_id": after[1]}).all()
        if not found:
            return 0, None
        some = _some(found)
        with self._database.write() as connection:
            forgotten = self._forget_all(connection, [row.id for row in some], before)
        is_end = len(found) < limit and len(some) == len(found)
        return forgotten, None if is_end else (some[-1].finished_at, some[-1].id)

    def _forget_all(self, connection: Connection, jobs: Sequence[int], before: Instant) -> int:
        over = self._over_and_done(connection, jobs, before)
        if over:
            for statement in self._forget:
                connection.execute(statement, {"p_ids": [row.id for row in over]})
            specs = {"p_hashes": sorted({row.spec for row in over})}
            connection.execute(self._lock_specs, specs).all()
            connection.execute(self._forget_specs, specs)
        return len(over)

    def _over_and_done(self, connection: Connection, jobs: Sequence[int], before: Instant) -> list[Any]:
        """Those that finished before then and owe nothing, held to the end of the transaction."""
        over = connection.execute(self._over, {"p_ids": jobs, "p_before": before}).all()
        owed = connection.execute(self._owed, {"p_ids": [row.id for row in over]}).all()
        owing = {row.job for row in owed if row.state == DeliveryState.PENDING.value}
        return [row for row in over if row.id not in owing]


def _some(found: Sequence[Any]) -> Sequence[Any]:
    """As many of them, from the first on, as have no more than `MOST_ROWS` rows together."""
    rows = 0
    for number, row in enumerate(found):
        # A damaged count says nothing.
        events = row.event_seq if isinstance(row.event_seq, int) else KEEP_EVENTS
        rows += min(max(events, 0), KEEP_EVENTS) + _BESIDE
        if rows > MOST_ROWS and number:
            return found[:number]
    return found
