"""Does what jobs owe: cancels remotely, and calls what `then` names, for whoever ended them.

What is owed is a row (see `deliveries`). This process takes those that it can make
and writes what came of each. One that it cannot make, for it does not know the
callable, is left to other workers.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Sequence
from dataclasses import dataclass

from tarry.codec import decode_spec
from tarry.core.decision import Call
from tarry.core.deliveries import MAX_TRIES, callable_for, pause_after, read_cancel
from tarry.core.fetching import FetchAgain, NoResult
from tarry.core.function import Function
from tarry.core.spec import JobSpec
from tarry.core.texts import short
from tarry.deliveries import Delivery
from tarry.errors import CheckpointError, StoreError
from tarry.ports import JobRow
from tarry.runtime.begin import begin
from tarry.runtime.calls import is_cancelled
from tarry.runtime.drive import Parts
from tarry.runtime.fetching import Fetching
from tarry.runtime.values import last_answers_of
from tarry.runtime.views import failure, lacks_result, result
from tarry.words import MINUTE, CallKind, DeliveryKind, DeliveryState, Instant, Micros, micros

log = logging.getLogger("tarry.outbox")

AT_ONCE = 16
"""How many deliveries this process makes at a time; one that takes over a minute is not counted any more."""

_PAGE = 100
_NOTE = 300
_ASIDE: Micros = MINUTE
_LONG: Micros = MINUTE


@dataclass(frozen=True, slots=True)
class _Made:
    """What came of one try."""

    state: DeliveryState
    note: str


class Outbox:
    """The deliveries of one namespace, as far as they can be made here.

    `look` begins what is due and returns at once; `drain` also waits for it.
    """

    def __init__(self, parts: Parts, fetching: Fetching) -> None:
        self._store = parts.store
        self._units = parts.units
        self._clock = parts.clock
        self._worker = parts.worker
        self._calls = parts.calls
        self._aside = parts.aside
        self._token = parts.token
        self._namespace = parts.namespace
        self._herald = parts.herald
        self._fetching = fetching
        self._next_at: Instant | None = None
        self._foreign: dict[int, Instant] = {}
        self._looking: asyncio.Task[None] | None = None
        self._is_asked = False
        self._under_way: dict[asyncio.Task[None], Instant] = {}

    @property
    def is_due(self) -> bool:
        """Whether something that had to wait may be made now."""
        return self._next_at is not None and self._next_at <= self._clock.now()

    def look(self) -> None:
        """Begin what is due and can be made here, without waiting for it."""
        self._is_asked = True
        if self._looking is None:
            self._looking = begin(self._look(), name="tarry outbox")

    async def drain(self, limit: int = _PAGE) -> int:
        """Make up to `limit` of the deliveries that are due; how many this process tried."""
        tried = 0
        while tried < limit:
            begun = await self._begin(min(limit - tried, AT_ONCE))
            if not begun:
                break
            # Not gathered: whoever stops to wait must not cut them.
            await asyncio.wait(begun)
            tried += len(begun)
        return tried

    async def undelivered(self, after: int, limit: int) -> list[Delivery]:
        """One page of those that are not tried any more."""
        return await self._units.ask(self._store.deliveries.undelivered, self._namespace, after, limit)

    async def redeliver(self, key: str) -> int:
        """Have those of a job tried again; how many."""
        return await self._units.ask(self._store.deliveries.again, self._namespace, key, self._clock.now())

    async def settled(self) -> None:
        """Until nothing is under way here any more."""
        while self._looking is not None or self._under_way:
            await asyncio.wait([*self._under_way, *([self._looking] if self._looking else [])])

    def cut(self) -> list[asyncio.Task[None]]:
        """What is still under way, to be cancelled."""
        return [*self._under_way, *([self._looking] if self._looking else [])]

    async def _look(self) -> None:
        try:
            while self._is_asked:
                self._is_asked = False
                while (room := self._room()) and await self._begin(room):
                    pass
        except Exception:
            log.exception("the outbox could not be read; it is looked at again")
        finally:
            self._looking = None

    def _room(self) -> int:
        """How many may begin: a callable that hangs keeps what others owe waiting for no more than a while."""
        since = self._clock.now() - _LONG
        return max(AT_ONCE - sum(began > since for began in self._under_way.values()), 0)

    async def _begin(self, limit: int) -> list[asyncio.Task[None]]:
        """Take up to `limit` that can be made here, and begin them."""
        now, worker = self._clock.now(), self._worker.id
        chosen = [] if worker is None else await self._chosen(now, limit)
        taken: list[Delivery] = []
        if chosen and worker is not None:
            take = self._store.deliveries.take
            taken = await self._units.run(take, worker, self._token(), now, chosen)
        self._next_at = await self._units.run(self._store.deliveries.next_at, self._namespace)
        if self._next_at is not None and self._next_at <= now:
            # What is due and was not taken is others', or waits for room: `look` is called when that may have changed.
            self._next_at = now + _ASIDE
        return [self._begun(delivery, worker) for delivery in taken if worker is not None]

    async def _chosen(self, now: Instant, limit: int) -> list[int]:
        chosen: list[int] = []
        after: int | None = 0
        while after is not None and len(chosen) < limit:
            page = await self._units.run(self._store.deliveries.due, self._namespace, now, after, _PAGE)
            rows = {row.id: row for row in await self._rows([one.job for one in page])}
            chosen += [one.id for one in page if self._can_make(one, rows.get(one.job), now)]
            after = page[-1].id if len(page) == _PAGE else None
        return chosen[:limit]

    def _can_make(self, delivery: Delivery, row: JobRow | None, now: Instant) -> bool:
        """Whether this process knows the callable; if not, it is left to others, and once said so."""
        if row is None or self._foreign.get(delivery.id, now) > now:
            return False
        try:
            function = _function(delivery, row)
            if function is not None:
                function.load()
        except (LookupError, CheckpointError) as problem:
            if delivery.id not in self._foreign:
                log.warning("job %r: its %s is left to others: %s", row.key, delivery.kind, problem)
            self._foreign[delivery.id] = now + _ASIDE
            return False
        self._foreign.pop(delivery.id, None)
        return True

    def _begun(self, delivery: Delivery, worker: int) -> asyncio.Task[None]:
        begun = begin(self._deliver(delivery, worker), name=f"tarry {delivery.kind} {delivery.key}")
        self._under_way[begun] = self._clock.now()
        begun.add_done_callback(self._under_way.pop)
        return begun

    async def _deliver(self, taken: Delivery, worker: int) -> None:
        try:
            made = await self._made(taken)
        except Exception as error:  # noqa: BLE001  # whatever goes wrong with one delivery is that delivery's failed try
            made = _failed(taken, f"{type(error).__name__}: {error}")
        now, note = self._clock.now(), short(made.note, _NOTE)
        wake = now + pause_after(taken.tries) if made.state is DeliveryState.PENDING else None
        level = logging.WARNING if made.state is DeliveryState.DEAD else logging.INFO
        log.log(level, "job %r: %s is %s, try %d: %s", taken.key, taken.kind, made.state, taken.tries, note)
        try:
            await self._units.run(self._store.deliveries.settle, taken, worker, now, made.state, note, wake)
            await self._tell(taken)
        except StoreError:
            log.exception("job %r: what came of its %s was not written", taken.key, taken.kind)

    async def _tell(self, taken: Delivery) -> None:
        """Tell of what was delivered for a job that is over; whoever holds one that is not tells of it itself."""
        for row in await self._rows([taken.job]):
            if row.outcome is not None:
                await self._herald.catch_up_with_end(row)

    async def _made(self, taken: Delivery) -> _Made:
        rows = await self._rows([taken.job])
        if not rows:
            return _Made(DeliveryState.DEAD, "the job's row is gone or damaged")
        (row,) = rows
        if row.run != taken.run:
            return _Made(DeliveryState.DEAD, "the job was started anew meanwhile")
        if taken.tries > MAX_TRIES:
            return _Made(DeliveryState.DEAD, taken.error or "given up")
        spec = decode_spec(row.spec)
        if taken.kind is DeliveryKind.CANCEL:
            return await self._cancelled(taken, spec, row)
        return await self._called(taken, spec, row)

    async def _cancelled(self, taken: Delivery, spec: JobSpec, row: JobRow) -> _Made:
        if spec.cancel is None:
            return _Made(DeliveryState.DONE, "there is no cancel to send any more")
        if row.outcome is None and spec.submit is not None and row.submit is None:
            return _failed(taken, "the submit is not answered yet")
        call = Call(CallKind.CANCEL, micros(spec.limits.poll_timeout))
        state, note = read_cancel(spec, await self._calls.make(spec, call, row.key, last_answers_of(row), row.token))
        return _failed(taken, note) if state is DeliveryState.PENDING else _Made(state, note)

    async def _called(self, taken: Delivery, spec: JobSpec, row: JobRow) -> _Made:
        function = _function(taken, row)
        if function is None or row.outcome is None:
            return _Made(DeliveryState.DONE, "there is nothing to call any more")
        if lacks_result(row):
            found, read = await self._fetching.attempt(spec, row, taken.tries)
            if found is None or lacks_result(found):
                why = read.why if isinstance(read, FetchAgain | NoResult) else "not written"
                return _failed(taken, f"its result is not available: {why}")
            row = found
        told = result(row) if row.outcome is not None and row.outcome.is_success else failure(row)
        try:
            await self._aside.call(f"then {row.id}", function.load(), told)
        except asyncio.CancelledError as error:
            if is_cancelled():
                raise
            return _failed(taken, f"{type(error).__name__}: {error}")
        return _Made(DeliveryState.DONE, function.function)

    async def _rows(self, jobs: Sequence[int]) -> list[JobRow]:
        return await self._units.run(self._store.rows, jobs) if jobs else []


def _function(delivery: Delivery, row: JobRow) -> Function | None:
    """The callable that this delivery needs; None where it needs none."""
    spec = decode_spec(row.spec)
    if delivery.kind is DeliveryKind.CANCEL:
        return spec.cancel if isinstance(spec.cancel, Function) else None
    return None if row.outcome is None else callable_for(spec, row.outcome)


def _failed(taken: Delivery, note: str) -> _Made:
    """A try that came to nothing: another one follows, unless that was the last."""
    return _Made(DeliveryState.DEAD if taken.tries >= MAX_TRIES else DeliveryState.PENDING, note)
