"""How long finished jobs are kept: until somebody prunes them."""

from __future__ import annotations

from sqlalchemy import bindparam, delete, exists, select

from tarry.store.rows import fits
from tarry.store.sqlite import Database
from tarry.store.statements import ids, p
from tarry.store.tables import Tables
from tarry.words import DeliveryState, Instant


class Retention:
    """Forgets finished jobs, their events, and the specs that no job uses any more."""

    def __init__(self, database: Database, tables: Tables) -> None:
        self._database = database
        job, event, spec, outbox = tables.job, tables.event, tables.spec, tables.outbox
        columns = (job.c.id, job.c.spec, job.c.outcome, job.c.finished_at)
        self._page = (
            select(*columns)
            .where(job.c.namespace == p(job.c.namespace), job.c.id > p(job.c.id))
            .order_by(job.c.id)
            .limit(bindparam("p_limit"))
        )
        self._forget = (
            delete(event).where(event.c.job.in_(ids())),
            delete(outbox).where(outbox.c.job.in_(ids())),
            delete(job).where(job.c.id.in_(ids())),
        )
        self._owing = select(outbox.c.job).where(outbox.c.job.in_(ids()), outbox.c.state == DeliveryState.PENDING.value)
        used = exists().where(job.c.spec == spec.c.hash)
        self._forget_specs = delete(spec).where(spec.c.hash.in_(ids("p_hashes")), ~used)

    def prune(self, namespace: str, before: Instant, after: int, limit: int) -> tuple[int, int | None]:
        """Of the next `limit` jobs past the id, forget those that finished before then, in one transaction.

        One that still owes a delivery is spared.
        """
        if not fits(namespace):
            return 0, None
        with self._database.write() as connection:
            params = {"p_namespace": namespace, "p_id": after, "p_limit": limit}
            found = connection.execute(self._page, params).all()
            over = [row for row in found if row.outcome is not None and (row.finished_at or before) < before]
            owing = set(connection.scalars(self._owing, {"p_ids": [row.id for row in over]}))
            over = [row for row in over if row.id not in owing]
            if over:
                for statement in self._forget:
                    connection.execute(statement, {"p_ids": [row.id for row in over]})
                connection.execute(self._forget_specs, {"p_hashes": sorted({row.spec for row in over})})
        return len(over), found[-1].id if len(found) == limit else None
