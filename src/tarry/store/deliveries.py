"""The outbox in SQL."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from functools import cache
from typing import Any

from sqlalchemy import (
    ColumnElement,
    Connection,
    Insert,
    RowMapping,
    Table,
    Update,
    and_,
    bindparam,
    case,
    exists,
    func,
    insert,
    literal,
    or_,
    select,
    update,
)

from tarry.core.deliveries import MAX_TRIES
from tarry.deliveries import Delivery
from tarry.ports import Event
from tarry.store.assigning import assigned
from tarry.store.batch import Batch, Values
from tarry.store.database import Database
from tarry.store.journal import append
from tarry.store.rows import clean, fits
from tarry.store.statements import AnySelect, Statements, ids, p
from tarry.store.tables import Tables
from tarry.words import SECOND, DeliveryKind, DeliveryState, Instant

_PENDING, _DEAD = DeliveryState.PENDING.value, DeliveryState.DEAD.value
_EVENTS = {DeliveryState.DONE: "delivered", DeliveryState.DEAD: "undelivered"}
_LOST = "its worker ended before it could write what came of it; it may or may not have been sent"


class SqlDeliveries:
    """The deliveries of one database; `is_alive` says whether a worker may take any."""

    def __init__(
        self, database: Database, tables: Tables, sql: Statements, is_alive: Callable[[Connection, int], bool]
    ) -> None:
        self._database = database
        self._sql = sql
        self._is_alive = is_alive
        outbox, job = tables.outbox, tables.job
        one = outbox.c.id == p(outbox.c.id)
        # As a value of each delivery, and the job as what may be missing: so a database begins at the few that wait.
        owing = job.alias("owing")
        namespace = select(owing.c.namespace).where(owing.c.id == outbox.c.job).scalar_subquery()
        known = _whole(outbox, job).where(namespace == p(job.c.namespace))
        self._due = _page(known, outbox.c.id + 0).where(outbox.c.wake <= bindparam("p_now"))
        self._dead = _page(known, outbox.c.id).where(outbox.c.state == _DEAD)
        self._next = select(func.min(outbox.c.wake)).where(outbox.c.wake.is_not(None), namespace == p(job.c.namespace))
        self._take = assigned(
            update(outbox).where(one, outbox.c.owner.is_(None), outbox.c.wake <= bindparam("p_now")),
            {"owner": p(outbox.c.owner), "nonce": p(outbox.c.nonce), "wake": None, "tries": outbox.c.tries + 1},
        )
        mine = and_(outbox.c.owner == p(outbox.c.owner), outbox.c.nonce == p(outbox.c.nonce))
        self._taken = (
            _whole(outbox, job).where(outbox.c.id.in_(ids()), mine, job.c.id.is_not(None)).order_by(outbox.c.id)
        )
        written = {name: bindparam(f"p_new_{name}", type_=outbox.c[name].type) for name in ("state", "error", "wake")}
        self._settle = assigned(update(outbox).where(one, mine), {**written, "owner": None, "nonce": None})
        self._tell = assigned(update(job).where(job.c.id == p(job.c.id)), {"event_seq": job.c.event_seq + 1})
        named = select(job.c.id).where(job.c.namespace == p(job.c.namespace), job.c.key == p(job.c.key))
        self._again = assigned(
            update(outbox).where(outbox.c.state == _DEAD, outbox.c.job.in_(named)),
            {"state": _PENDING, "wake": bindparam("p_now"), "tries": 0, "error": None},
        )

    def due(self, namespace: str, now: Instant, after: int, limit: int) -> list[Delivery]:
        """Those that wait for a worker."""
        return self._page(self._due, namespace, p_now=now, p_after=after, p_limit=limit)

    def next_at(self, namespace: str) -> Instant | None:
        """When the next one waits for a worker."""
        with self._database.read() as connection:
            found: Instant | None = connection.scalar(self._next, {"p_namespace": namespace})
            return found

    def take(self, worker: int, nonce: str, now: Instant, deliveries: Sequence[int]) -> list[Delivery]:
        """Take them, or find those that an earlier try of this very call took."""
        mine = {"p_owner": worker, "p_nonce": nonce}
        with self._database.write() as connection:
            if not self._is_alive(connection, worker):
                return []
            for delivery in deliveries:
                connection.execute(self._take, {"p_id": delivery, "p_now": now, **mine})
            found = connection.execute(self._taken, {"p_ids": list(deliveries), **mine}).mappings().all()
        return [_delivery(columns) for columns in found]

    def settle(
        self, taken: Delivery, worker: int, now: Instant, state: DeliveryState, note: str, wake: Instant | None
    ) -> bool:
        """Write what came of it, with its event."""
        params = {"p_id": taken.id, "p_owner": worker, "p_nonce": taken.nonce}
        error = None if state is DeliveryState.DONE else clean(note)
        written = {"p_new_state": state.value, "p_new_error": error, "p_new_wake": wake}
        with self._database.write() as connection:
            if connection.execute(self._settle, params | written).rowcount != 1:
                return False
            if state in _EVENTS:
                self._told(connection, taken.job, Event(_EVENTS[state], now, {"what": taken.kind.value, "note": note}))
            return True

    def undelivered(self, namespace: str, after: int, limit: int) -> list[Delivery]:
        """Those that nobody tries any more."""
        return self._page(self._dead, namespace, p_after=after, p_limit=limit)

    def again(self, namespace: str, key: str, now: Instant) -> int:
        """Let them be tried again."""
        if not (fits(namespace) and fits(key)):
            return 0
        with self._database.write() as connection:
            return connection.execute(self._again, {"p_namespace": namespace, "p_key": key, "p_now": now}).rowcount

    def _page(self, which: AnySelect, namespace: str, **params: Any) -> list[Delivery]:
        if not fits(namespace):
            return []
        with self._database.read() as connection:
            found = connection.execute(which, {"p_namespace": namespace, **params}).mappings().all()
        return [_delivery(columns) for columns in found]

    def _told(self, connection: Connection, job: int, event: Event) -> None:
        if connection.execute(self._tell, {"p_id": job}).rowcount == 1:
            append(connection, self._sql, job, [event])


@cache
def owing(outbox: Table, job: Table) -> Batch:
    """Adds deliveries of a job's run, each once: the same kind is not owed twice."""

    def add(new: Values) -> Insert:
        owed = exists().where(outbox.c.job == job.c.id, outbox.c.run == job.c.run, outbox.c.kind == new("kind"))
        row = select(job.c.id, job.c.run, new("kind"), literal(_PENDING), new("wake"), literal(0))
        row = row.where(job.c.id == new("job"), ~owed)
        # They are numbered as they were given.
        row = row.order_by(new("place"))
        return insert(outbox).from_select(["job", "run", "kind", "state", "wake", "tries"], row)

    return Batch(outbox, ("job", "kind", "wake", "place"), add)


def owe(connection: Connection, owing: Batch, owed: Iterable[tuple[int, DeliveryKind, Instant | None]]) -> None:
    """Note that these deliveries are owed: the job, what, and when it wants a worker."""
    owing.count(connection, [(job, kind.value, wake, place) for place, (job, kind, wake) in enumerate(owed)])


def freeing(outbox: Table) -> Update:
    """Frees what a worker that is gone had taken; of a cancel nobody knows whether it was sent.

    What may have ended the worker is tried no more often than what fails, and what was lost more than once
    comes again at different times: so it takes nothing else along.
    """
    gives_up = or_(outbox.c.kind == DeliveryKind.CANCEL.value, outbox.c.tries >= MAX_TRIES)
    apart = (outbox.c.tries - 1) * (outbox.c.id % 8 + 1) * SECOND
    return assigned(
        update(outbox).where(outbox.c.owner == p(outbox.c.owner)),
        {
            "owner": None,
            "nonce": None,
            "state": case((gives_up, _DEAD), else_=outbox.c.state),
            "wake": case((gives_up, None), else_=bindparam("p_now", type_=outbox.c.wake.type) + apart),
            "error": _LOST,
        },
    )


def _whole(outbox: Table, job: Table) -> AnySelect:
    columns = [column for column in outbox.c if column.name not in {"owner", "wake"}]
    return select(*columns, job.c.key).select_from(outbox.outerjoin(job, outbox.c.job == job.c.id))


def _page(known: AnySelect, place: ColumnElement[int]) -> AnySelect:
    """Those from a place on. Where it is no plain column, a database finds them by another index, and sorts what it found."""
    return known.where(place > bindparam("p_after")).order_by(place).limit(bindparam("p_limit"))


def _delivery(columns: RowMapping) -> Delivery:
    values: dict[str, Any] = {str(name): value for name, value in columns.items()}
    return Delivery(**{**values, "kind": DeliveryKind(values["kind"]), "state": DeliveryState(values["state"])})
