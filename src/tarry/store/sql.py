"""`SqlStore`: the store on an SQL database.

Each method is one transaction and may be run again after its answer was lost: a
write that finds its row one step on, under its own nonce, knows that it was
the one, and says so instead of writing twice.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from functools import partial
from typing import Any, TypeVar

from sqlalchemy import URL, Connection, Engine

from tarry.deliveries import Deliveries
from tarry.errors import CheckpointError, StoreError, StoreUnavailable
from tarry.ports import (
    Checkpoint,
    Command,
    Event,
    Glance,
    Grip,
    JobRow,
    Known,
    Listing,
    NewJob,
    Place,
    Restart,
    StoredEvent,
    Told,
)
from tarry.store.addresses import database_at
from tarry.store.backlog import Backlog
from tarry.store.commands import Commands
from tarry.store.database import Database
from tarry.store.deliveries import SqlDeliveries, owe, owing
from tarry.store.doctor import Finding, examine
from tarry.store.faults import Duplicate, Unstorable
from tarry.store.holding import Missed, holding_on
from tarry.store.inventory import Inventory, inventory
from tarry.store.journal import add_spec, append, begin, read_after
from tarry.store.migrations import migrate
from tarry.store.retention import Retention
from tarry.store.rows import check_key, claimed_row, clean, cleaned, fits, glance, job_row, new_job
from tarry.store.statements import statements_on
from tarry.store.tables import tables_under
from tarry.store.workers import Workers
from tarry.words import DeliveryKind, Instant, Micros, Outcome, Phase

T = TypeVar("T")

log = logging.getLogger("tarry.store")

# A statement takes a bounded number of parameters.
_CHUNK = 500


class SqlStore:
    """Keeps jobs in the database of a URL (`sqlite:///tarry.db`, `postgresql://…`, `mysql://…`) or of an engine with one.

    `prefix` names the tables: 1 to 31 of a-z, 0-9 and _, not starting with a
    digit. Nothing is touched before `open`. Raises `StoreError` for a URL without a store behind it.
    """

    def __init__(self, store: str | URL | Engine | Database, *, prefix: str = "tarry_") -> None:
        self.tables = tables_under(prefix)
        self._database = _database(store) if isinstance(store, str | URL | Engine) else store
        self._sql = statements_on(self.tables, self._database.dialect)
        self._workers = Workers(self._database, self.tables, self._sql)
        self._backlog = Backlog(self._database, self.tables, self._sql)
        self._channel = f"{self.tables.prefix}heard"
        self._tell = partial(self._database.tell, name=self._channel)
        self._commands = Commands(self._database, self.tables, self._sql, self._tell)
        self._retention = Retention(self._database, self.tables)
        self._owing = owing(self.tables.outbox, self.tables.job)
        self._holding = holding_on(self.tables, self._sql)
        self.deliveries: Deliveries = SqlDeliveries(self._database, self.tables, self._sql, self._workers.is_alive)
        self.blocking = self._database.blocking

    def open(self, now: Instant) -> None:  # noqa: ARG002 - for databases with a clock of their own to compare with
        """Create or migrate the tables; `StoreError` for a newer schema, or what is no database."""
        opened = self._database.open()
        try:
            with self._database.write() as connection, self._database.alone(connection, self.tables.prefix):
                migrate(connection, self.tables)
        except BaseException:
            if opened:
                self._database.close()
            raise

    def close(self) -> None:
        """Give back connections and the locks of workers that were not retired."""
        self._database.close()

    def inventory(self) -> Inventory:
        """What the database holds; an older schema is not brought up to date for it."""
        self._database.open()
        return inventory(self._database, self.tables)

    def doctor(self, now: Instant) -> list[Finding]:
        """What is wrong with the database and the jobs in it, and what to do; it changes nothing, and need not be open."""
        return examine(self._database, self.tables, now)

    def version(self) -> int:
        """A number that is another one after each commit, whoever made it."""
        return self._database.version()

    def listen(self, ring: Callable[[], object]) -> Callable[[], None] | None:
        """Call `ring`, from any thread, when another process committed an outcome or a command; what ends that."""
        return self._database.listen(self._channel, ring)

    def register(self, uuid: str, now: Instant, ttl: Micros) -> int:
        """A worker with a lease until now + ttl; its id."""
        return self._workers.register(uuid, now, ttl)

    def renew(self, worker: int, now: Instant, ttl: Micros) -> bool:
        """Prolong the lease until now + ttl; False when the worker was declared dead."""
        return self._workers.renew(worker, now, ttl)

    def retire(self, worker: int, now: Instant) -> None:
        """Mark the worker released; a permit it still has is counted as a poll."""
        self._workers.retire(worker, now)

    def bury(self, worker: int, now: Instant) -> int:
        """Declare dead those whose lease or process ended, and free their jobs; how many jobs."""
        return self._workers.bury(worker, now)

    def claim(
        self,
        worker: int,
        nonce: str,
        now: Instant,  # noqa: ARG002 - as `open`
        jobs: Sequence[int],
        permit_until: Instant | None = None,
    ) -> list[JobRow]:
        """Take those that are free; a job whose row is damaged is left alone."""
        with self._database.write() as connection:
            if not self._workers.is_alive(connection, worker):
                return []
            return [row for ids in _chunks(jobs) for row in self._claim(connection, worker, nonce, ids, permit_until)]

    def reserve(self, grips: Sequence[Grip]) -> list[bool]:
        """Permit one poll each, in one transaction."""
        return self._hold(partial(self._holding.reserve, grips=grips))

    def isolate(self, grip: Grip) -> bool:
        """Note that the worker makes no call now but this job's."""
        with self._database.write() as connection:
            return self._holding.isolate(connection, grip)

    def checkpoint(self, writes: Sequence[Checkpoint]) -> list[bool]:
        """Commit all in one transaction; one that cannot be stored hurts only itself."""

        def write(connection: Connection, *, exact: bool) -> list[bool]:
            if any(each.outcome is not None for each in writes):
                self._tell(connection)
            return self._holding.checkpoint(connection, writes, exact=exact)

        return self._hold(write)

    def release(self, grips: Sequence[Grip], now: Instant) -> list[bool]:
        """Give up held jobs, their permits unused, in one transaction."""
        return self._hold(partial(self._holding.release, grips=grips, now=now))

    def add(self, job: NewJob) -> tuple[JobRow, bool]:
        """Create the job or find it; `SpecError` for a key that cannot be stored as it is."""
        try:
            return self.add_all([job])[0]
        except Duplicate:
            # Another process was quicker, and now it is found.
            return self.add_all([job])[0]

    def add_all(self, jobs: Sequence[NewJob]) -> list[tuple[JobRow, bool]]:
        """As `add` for each, in one transaction; raises for all what it would for one."""
        for job in jobs:
            check_key(job.namespace, job.key)
        with self._database.write() as connection:
            owners = {job.owner for job in jobs if job.owner is not None}
            # Their rows are locked first, as by a claim: whoever declares one dead finds what it took.
            alive = {owner for owner in sorted(owners) if self._workers.is_alive(connection, owner)}
            new: dict[int, NewJob] = {}
            numbers = [self._found_or_made(connection, job, alive, new) for job in jobs]
            begin(connection, self._sql, [(number, job.events) for number, job in new.items()])
            rows = {
                row.id: row
                for ids in _chunks(sorted(set(numbers)))
                for row in map(job_row, connection.execute(self._sql.by_id, {"p_ids": ids}))
            }
            if len(rows) < len(set(numbers)):
                raise StoreUnavailable("a job was forgotten while it was looked at")
        added = [(rows[number], job) for number, job in zip(numbers, jobs, strict=True)]
        return [(row, row.token == job.token) for row, job in added]

    def cancel(
        self, job: int, step: int, state: str, now: Instant, events: Sequence[Event], owed: Sequence[DeliveryKind] = ()
    ) -> bool:
        """End the job as cancelled if it is still at `step`; an unsettled permit counts as a poll."""
        params = {
            "p_id": job,
            "p_step": step,
            "p_state": clean(state),
            "p_phase": Phase.DONE.value,
            "p_outcome": Outcome.CANCELLED.value,
            "p_finished_at": now,
            "p_events": len(events),
        }
        with self._database.write() as connection:
            if connection.execute(self._sql.cancel, params).rowcount == 1:
                append(connection, self._sql, job, events)
                self._owe(connection, job, owed, now)
                self._tell(connection)
                return True
            return connection.execute(self._sql.cancelled, params).first() is not None

    def fetched(self, job: int, step: int, state: str, output: str | None, events: Sequence[Event]) -> bool:
        """Write the output of a job that is over, if it is still at `step` and has none."""
        params = {
            "p_id": job,
            "p_step": step,
            "p_state": clean(state),
            "p_output": cleaned(output),
            "p_events": len(events),
        }
        with self._database.write() as connection:
            if connection.execute(self._sql.fetched, params).rowcount != 1:
                return False
            append(connection, self._sql, job, events)
            return True

    def command(self, command: Command) -> bool:
        """Write it if the job is still at its step and command, and not over."""
        return self._commands.command(command)

    def restart(self, restart: Restart) -> bool:
        """Begin the run if the job is still at its step and command."""
        return self._commands.restart(restart)

    def ask_to_cancel(self, job: int, run: int, now: Instant, event: Event) -> bool:
        """Remember it, and owe the request, if the job is not over and nobody asked before."""
        params = {"p_id": job, "p_run": run, "p_cancel_requested_at": now}
        with self._database.write() as connection:
            if connection.execute(self._sql.ask_to_cancel, params).rowcount != 1:
                return False
            append(connection, self._sql, job, [event])
            self._owe(connection, job, [DeliveryKind.CANCEL], now)
            self._tell(connection)
            return True

    def told(self, told: Sequence[Told]) -> None:
        """Remember how far the events of each job were told."""
        params = [{"p_id": job, "p_run": run, "p_told": seq} for job, run, seq in sorted(told)]
        if params:
            with self._database.write() as connection:
                connection.execute(self._sql.told, params)

    def find(self, namespace: str, key: str) -> JobRow | None:
        """The job with this key; `CheckpointError` when its row is damaged."""
        if not (fits(namespace) and fits(key)):
            return None
        with self._database.read() as connection:
            params = {"p_namespace": namespace, "p_key": key}
            found = connection.execute(self._sql.find, params).one_or_none()
        return None if found is None else job_row(found)

    def rows(self, jobs: Sequence[int]) -> list[JobRow]:
        """The jobs with these ids, by id; those that are gone or damaged are left out."""
        with self._database.read() as connection:
            return [
                row
                for ids in _chunks(jobs)
                for row in _sound(connection.execute(self._sql.by_id, {"p_ids": ids}).all(), job_row)
            ]

    def glance(self, jobs: Sequence[int]) -> list[Glance]:
        """What waiters need of these jobs, by id."""
        with self._database.read() as connection:
            return [
                seen
                for ids in _chunks(jobs)
                for seen in _sound(connection.execute(self._sql.glance, {"p_ids": ids}).all(), glance)
            ]

    def moved(self, known: Sequence[Known]) -> set[int]:
        """Those of them that are not as they were known."""
        with self._database.read() as connection:
            return self._sql.moved.numbers(connection, known)

    def due(self, namespace: str, until: Instant, after: Place, limit: int) -> tuple[list[JobRow], Place | None]:
        """Jobs that want an owner by `until`, by (wake, id); one that is damaged is reported once and passed by."""
        return self._backlog.look(namespace, until, after, limit)

    def held(self, namespace: str) -> int:
        """How many jobs of the namespace some worker holds."""
        return self._backlog.count_held(namespace)

    def prune(self, namespace: str, before: Instant, after: Place, limit: int) -> tuple[int, Place | None]:
        """Forget up to `limit` jobs that finished before then; how many, and the place to go on after."""
        return self._retention.prune(namespace, before, after, limit)

    def listing(self, page: Listing) -> list[JobRow]:
        """One page by id; damaged jobs are left out."""
        if not (fits(page.namespace) and fits(page.prefix)):
            return []
        with self._database.read() as connection:
            return list(_sound(connection.execute(self._sql.listing(page)).all(), job_row))

    def events(self, namespace: str, key: str, after: tuple[int, int], limit: int) -> list[StoredEvent]:
        """At most `limit` events past the cursor; none for an unknown key."""
        if not (fits(namespace) and fits(key)):
            return []
        with self._database.read() as connection:
            job = connection.scalar(self._sql.named, {"p_namespace": namespace, "p_key": key})
            return [] if job is None else read_after(connection, self._sql, job, key, after, limit)

    def _found_or_made(
        self, connection: Connection, job: NewJob, alive: Collection[int | None], new: dict[int, NewJob]
    ) -> int:
        """The id of the job with this key; one that is made now is put with the `new` ones."""
        found = connection.scalar(self._sql.named, {"p_namespace": job.namespace, "p_key": job.key})
        if found is not None:
            return int(found)
        if all(job.spec != other.spec for other in new.values()):
            add_spec(connection, self._sql, job.spec)
        values = new_job(job, job.owner if job.owner in alive else None)
        added = connection.execute(self._sql.add_job, values).inserted_primary_key
        number = int(added[0]) if added else 0
        new[number] = job
        return number

    def _claim(
        self, connection: Connection, worker: int, nonce: str, ids: list[int], permit_until: Instant | None
    ) -> list[JobRow]:
        params: dict[str, Any] = {"p_ids": ids, "p_owner": worker, "p_nonce": nonce}
        if self._database.dialect != "sqlite":
            # There others go on between the look and the write. What another worker is just taking is its.
            params["p_ids"] = list(connection.scalars(self._sql.lock_takeable, params))
        found = connection.execute(self._sql.takeable, params).all()
        rows = list(_sound(found, partial(claimed_row, owner=worker, nonce=nonce, permit_until=permit_until)))
        self._sql.claim.count(connection, [(row.id, worker, nonce, row.reserved) for row in rows])
        return rows

    def _hold(self, write: Callable[..., list[bool]]) -> list[bool]:
        """One transaction; where not all of it can be written, another that looks what can."""
        try:
            with self._database.write() as connection:
                return write(connection, exact=False)
        except (Missed, Unstorable):
            with self._database.write() as connection:
                return write(connection, exact=True)

    def _owe(self, connection: Connection, job: int, owed: Sequence[DeliveryKind], now: Instant | None) -> None:
        owe(connection, self._owing, ((job, kind, now) for kind in owed))


def _database(store: str | URL | Engine) -> Database:
    found = database_at(store)
    if found is None:
        raise StoreError("a database in memory is lost with its connection: use MemoryStore(), or name a file")
    return found


def _sound(found: Iterable[Sequence[Any]], read: Callable[[Sequence[Any]], T]) -> Iterator[T]:
    """The rows that can be read; one that cannot must not disturb the others."""
    for columns in found:
        try:
            yield read(columns)
        except CheckpointError as error:
            log.error("%s", error)  # noqa: TRY400 - the message is the whole of it


def _chunks(ids: Sequence[int]) -> Iterator[list[int]]:
    for start in range(0, len(ids), _CHUNK):
        yield list(ids[start : start + _CHUNK])
