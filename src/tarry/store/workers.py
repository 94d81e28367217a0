"""Workers: their leases, their death, and what becomes of the jobs they held.

A dead worker's permits are counted as polls it made, because it may have made
them: the limit on polls holds whatever happened. Its jobs are polled again not before
their floor after the last moment at which that poll can have started.
"""

from __future__ import annotations

import logging
from collections.abc import Collection, Sequence
from typing import Any

from sqlalchemy import (
    Connection,
    RowMapping,
    Table,
    Update,
    and_,
    bindparam,
    delete,
    exists,
    insert,
    or_,
    select,
    update,
)

from tarry.errors import StoreError
from tarry.ports import CONVICTED, QUARANTINED, SUSPECT, Event
from tarry.store.assigning import assigned
from tarry.store.database import Database
from tarry.store.deliveries import freeing
from tarry.store.faults import Unstorable, translated
from tarry.store.journal import append
from tarry.store.locks import is_uuid
from tarry.store.statements import Statements, ids, p
from tarry.store.tables import Tables
from tarry.words import DAY, Instant, Micros, Phase

log = logging.getLogger("tarry.store")

BATCH = 500
"""How many jobs are freed in one transaction."""

_REMEMBERED = DAY
_JOB, _WORKER = "job", "worker"


class Workers:
    """The worker rows of one database; each method is safe to run again."""

    def __init__(self, database: Database, tables: Tables, sql: Statements) -> None:
        self._database = database
        self._sql = sql
        self._seen: tuple[int, int, Sequence[RowMapping], bool, Micros] | None = None
        self._damaged: dict[tuple[str, int], RowMapping] = {}
        worker, job = tables.worker, tables.job
        alive = and_(worker.c.dead == 0, worker.c.released == 0)
        me = worker.c.id == p(worker.c.id)
        until = worker.c.lease_until
        self._clock = database.clock
        now = bindparam("p_now", type_=until.type) if database.clock is None else database.clock
        lease = now + bindparam("p_ttl", type_=until.type)
        self._known = select(worker.c.id, worker.c.dead, worker.c.released).where(worker.c.uuid == p(worker.c.uuid))
        self._enter = insert(worker).values(
            uuid=p(worker.c.uuid), guarded=p(worker.c.guarded), lease_until=lease, dead=0, released=0
        )
        self._renew = assigned(update(worker).where(me, alive), {"lease_until": lease})
        # Shared, to the end of the transaction: whoever declares the worker dead waits, and finds what it took.
        self._alive = select(worker.c.id).where(me, alive).with_for_update(read=True)
        self._others = select(worker.c.id, worker.c.uuid, worker.c.guarded, until).where(
            worker.c.id != p(worker.c.id), alive
        )
        late = or_(until <= now, worker.c.id.in_(ids("p_gone")))
        self._bury = assigned(update(worker).where(me, alive, late), {"dead": 1})
        # In the transaction that ends the worker, so that nothing can be left with one that is gone.
        self._free_deliveries = freeing(tables.outbox)
        mine = job.c.owner == p(job.c.owner)
        called = or_(job.c.reserved == 1, job.c.phase.not_in([Phase.WAITING.value, Phase.BLOCKED.value]))
        struck = {"strikes": job.c.strikes + 1}
        self._strike_one = assigned(update(job).where(mine, job.c.alone == 1), struck)
        self._strike_all = assigned(update(job).where(mine, called, job.c.strikes < SUSPECT), struck)
        self._retire = assigned(update(worker).where(me, alive), {"released": 1})
        self._uuid = select(worker.c.uuid).where(me)
        over = or_(worker.c.dead == 1, worker.c.released == 1)
        self._forget = delete(worker).where(over, until < now - _REMEMBERED)
        held = _held(job, worker)
        # An alias, because the statement joins the worker's row as well, dead or alive.
        live = worker.alias("live")
        owned = exists().where(live.c.id == job.c.owner, live.c.dead == 0, live.c.released == 0)
        self._orphans = held.where(job.c.owner.is_not(None), ~owned)
        self._holdings = held.where(mine)
        self._free = _free(job)

    def register(self, uuid: str, now: Instant, ttl: Micros) -> int:
        """The id of the worker with this uuid, made when there is none; `StoreError` when it is dead already."""
        # The lock comes first: a row without one would look like a worker that is gone.
        guarded = self._database.locks.hold(uuid)
        with self._database.write() as connection:
            known = connection.execute(self._known, {"p_uuid": uuid}).one_or_none()
            if known is None:
                row = {"p_uuid": uuid, "p_guarded": int(guarded)} | self._lease(now, ttl)
                return _new_id(connection.execute(self._enter, row).inserted_primary_key)
            if known.dead or known.released:
                raise StoreError(f"worker {uuid} is dead or released: register again under a new uuid")
            return int(known.id)

    def renew(self, worker: int, now: Instant, ttl: Micros) -> bool:
        """Prolong the lease of a live worker."""
        with self._database.write() as connection:
            return connection.execute(self._renew, {"p_id": worker} | self._lease(now, ttl)).rowcount == 1

    def is_alive(self, connection: Connection, worker: int) -> bool:
        """Whether the worker may take jobs, as this transaction sees it."""
        return connection.execute(self._alive, {"p_id": worker}).first() is not None

    def retire(self, worker: int, now: Instant) -> None:
        """Mark the worker released, then free what it still holds."""
        with self._database.write() as connection:
            connection.execute(self._retire, {"p_id": worker})
            connection.execute(self._free_deliveries, {"p_owner": worker, "p_now": now})
            uuid = connection.scalar(self._uuid, {"p_id": worker})
            ahead = self._ahead(connection, now)
        self._free_all(self._holdings, {"p_owner": worker}, now, ahead)
        if uuid is not None:
            self._database.locks.drop(uuid)

    def bury(self, worker: int, now: Instant) -> int:
        """Declare the dead dead, and free what nobody alive holds; how many jobs."""
        others, orphans, ahead = self._known_others(worker, now)
        gone = [other["id"] for other in others if other["guarded"] and self._database.locks.gone(other["uuid"])]
        suspects = [other for other in others if other["id"] in gone or other["lease_until"] - ahead <= now]
        if not suspects and not orphans:
            return 0
        buried = self._declare_dead(suspects, gone, now)
        freed = self._free_all(self._orphans, {}, now, ahead)
        for uuid in buried:
            self._database.locks.drop(uuid)
        return freed

    def _ahead(self, connection: Connection, now: Instant) -> Micros:
        """How far the clock that leases are kept by is ahead of the caller's."""
        return 0 if self._clock is None else int(connection.scalar(select(self._clock)) or 0) - now

    @staticmethod
    def _lease(now: Instant, ttl: Micros) -> dict[str, Any]:
        return {"p_now": now, "p_ttl": ttl}

    def _known_others(self, worker: int, now: Instant) -> tuple[Sequence[RowMapping], bool, Micros]:
        """The other workers, whether there are jobs to free of owners that are none, and how far leases are ahead.

        Read anew after a change.
        """
        version = self._database.version()
        if self._seen is None or self._seen[:2] != (version, worker):
            with self._database.read() as connection:
                found = connection.execute(self._others, {"p_id": worker}).mappings().all()
                ownerless = connection.execute(self._orphans, {"p_after": 0}).mappings().all()
                ahead = self._ahead(connection, now)
            others = [other for other in found if self._is_sound(other)]
            # A job that could not be freed is not tried again, round by round, while it stays as it is.
            orphans = len(ownerless) == BATCH or not all(self._is_known(_JOB, row) for row in ownerless)
            self._seen = (version, worker, others, orphans, ahead)
        return self._seen[2:]

    def _declare_dead(self, suspects: Collection[RowMapping], gone: list[int], now: Instant) -> list[str]:
        """The uuids of those that were alive on paper until now; a lease renewed meanwhile is respected."""
        buried = []
        with self._database.write() as connection:
            for other in suspects:
                params = {"p_id": other["id"], "p_now": now, "p_gone": gone}
                if connection.execute(self._bury, params).rowcount == 1:
                    buried.append(other["uuid"])
                    connection.execute(self._free_deliveries, {"p_owner": other["id"], "p_now": now})
                    self._strike(connection, other["id"])
            connection.execute(self._forget, {"p_now": now})
        return buried

    def _strike(self, connection: Connection, worker: int) -> None:
        """Hold its end against the job that it called alone or, if it did not, against all that it may have called."""
        params = {"p_owner": worker}
        if connection.execute(self._strike_one, params).rowcount == 0:
            connection.execute(self._strike_all, params)

    def _free_all(self, which: Any, params: dict[str, Any], now: Instant, ahead: Micros) -> int:
        """Free them batch by batch, each in a transaction, so that others get their turn; how many."""
        total, after = 0, 0
        while True:
            with self._database.write() as connection:
                found = connection.execute(which, {**params, "p_after": after}).mappings().all()
                total += sum(self._free_one(connection, row, now, ahead) for row in found)
            if len(found) < BATCH:
                return total
            after = found[-1]["id"]

    def _free_one(self, connection: Connection, row: RowMapping, now: Instant, ahead: Micros) -> bool:
        """Free it if it is still as it was read; one that cannot be freed must not disturb the others."""
        if self._is_known(_JOB, row):
            return False
        try:
            with translated(), connection.begin_nested():
                freed = connection.execute(self._free, _freed(row, now, ahead)).rowcount == 1
                if freed:
                    append(connection, self._sql, row["id"], _told(row, now))
                return freed
        except Unstorable as error:
            self._leave(_JOB, row, str(error))
            return False

    def _is_sound(self, worker: RowMapping) -> bool:
        """Whether the row can be a worker's; one that cannot must not keep the others from being looked at."""
        sound = is_uuid(worker["uuid"]) and isinstance(worker["lease_until"], int)
        if not sound and not self._is_known(_WORKER, worker):
            self._leave(_WORKER, worker, "its uuid or lease is none")
        return sound

    def _is_known(self, kind: str, row: RowMapping) -> bool:
        """Whether this very row is known to be damaged; one that somebody mended is another."""
        return self._damaged.get((kind, row["id"])) == row

    def _leave(self, kind: str, row: RowMapping, why: str) -> None:
        log.error("%s id %s is damaged; it was left as it is: %s", kind, row["id"], why)
        self._damaged[kind, row["id"]] = row


def _held(job: Table, worker: Table) -> Any:
    """A batch of jobs, with what is known of the worker that each names."""
    names = ("id", "owner", "fence", "step", "cmd", "polls", "reserved", "max_polls", "polled_at", "due", "floor")
    more = ("strikes", "event_seq", "paused", "alone")
    # Not the column itself: a database would walk along it, over all jobs, in place of the few that have an owner.
    place = job.c.id + 0
    return (
        select(*(job.c[name] for name in (*names, *more)), worker.c.lease_until)
        .select_from(job.outerjoin(worker, worker.c.id == job.c.owner))
        .where(place > bindparam("p_after"))
        .order_by(place)
        .limit(BATCH)
    )


def _free(job: Table) -> Update:
    """Frees a job that is still as it was read."""
    same = ("id", "fence", "step", "cmd", "reserved", "owner")
    new = ("polls", "polled_at", "due", "wake", "paused")
    return assigned(
        update(job).where(*(job.c[name] == p(job.c[name]) for name in same)),
        {
            **{name: bindparam(f"p_new_{name}", type_=job.c[name].type) for name in new},
            **dict.fromkeys(("owner", "nonce")),
            **dict.fromkeys(("reserved", "alone"), 0),
            "fence": job.c.fence + 1,
            "step": job.c.step + 1,
            "event_seq": job.c.event_seq + bindparam("p_events"),
        },
    )


def _freed(row: RowMapping, now: Instant, ahead: Micros) -> dict[str, Any]:
    """The columns of a job after its worker is gone, with what they rely on."""
    if not all(value is None or isinstance(value, int) for value in row.values()):
        raise TypeError("a column holds no number")
    polls, polled_at, due = row["polls"], row["polled_at"], row["due"]
    if row["reserved"]:
        polls = _counted(row)
        # The last moment at which the poll can have started: the lease forbids later ones, and so does death.
        latest = now if row["lease_until"] is None else min(row["lease_until"] - ahead, now)
        polled_at = max(polled_at or latest, latest)
        due = max(due or polled_at, polled_at + row["floor"])
    paused = QUARANTINED if _is_convicted(row) else row["paused"]
    wake = None if paused else now if due is None else due
    relied_on = {f"p_{name}": row[name] for name in ("id", "fence", "step", "cmd", "reserved", "owner")}
    columns = {"polls": polls, "polled_at": polled_at, "due": due, "wake": wake, "paused": paused}
    return {
        **relied_on,
        **{f"p_new_{name}": value for name, value in columns.items()},
        "p_events": len(_told(row, now)),
    }


def _is_convicted(row: RowMapping) -> bool:
    """Whether the worker ended once too often in a call of this job, with no other call under way."""
    return bool(row["alone"] and row["strikes"] >= CONVICTED)


def _counted(row: RowMapping) -> int:
    counted = int(row["polls"] + row["reserved"])
    return counted if row["max_polls"] is None else min(counted, max(row["polls"], row["max_polls"]))


def _told(row: RowMapping, now: Instant) -> list[Event]:
    events = [Event("freed", now, {"worker": row["owner"]})]
    if row["reserved"]:
        events.insert(0, Event("written_off", now, {"worker": row["owner"], "polls": _counted(row)}))
    if _is_convicted(row):
        events.append(Event("quarantined", now, {"strikes": row["strikes"]}))
    return events


def _new_id(key: Any) -> int:
    return int(key[0])
