"""Group commit: what the jobs of a process ask of the store at about the same time is asked together.

While one call is on the store's thread, whoever comes joins the next: a lone job
waits for nobody, and under load one transaction serves hundreds of jobs. A write is answered
after the commit that it was part of.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from functools import partial
from typing import Any, Generic, TypeAlias, TypeVar

from tarry.errors import StoreUnavailable, TarryError
from tarry.ports import Checkpoint, Clock, Glance, Grip, JobRow, NewJob, Store, StoredEvent, Told
from tarry.runtime.begin import begin
from tarry.runtime.hold import RESERVE_WITHIN
from tarry.runtime.units import Units

Item = TypeVar("Item")
Answer = TypeVar("Answer")

Added: TypeAlias = tuple[JobRow, bool]
"""The row of a job, and whether it was made now."""

Name: TypeAlias = tuple[str, str]
"""A namespace and a key."""

Since: TypeAlias = tuple[str, str, tuple[int, int], int]
"""A namespace and a key, past which event, and how many at most."""

MOST = 500
"""How many jobs one call is for."""

MOST_ADDED = 50
"""How many jobs are added in one call: each takes several statements, and the lease is renewed between two calls."""


class _Awaited(asyncio.Future[Answer]):
    """An answer that somebody waits for."""

    def give_up(self) -> None:
        """Nobody will answer any more."""
        if not self.done():
            self.set_exception(TarryError("the poller was closed before the store had answered"))
            self.exception()  # marked as seen: a caller who was cancelled does not look at it


class _Sure(_Awaited[Answer]):
    """An answer that is waited for to the end: who is cancelled meanwhile is so once it has come, as with `drained`."""

    def cancel(self, msg: Any | None = None) -> bool:  # noqa: ARG002  # asyncio's signature
        """Not while the call runs: what it did must be known."""
        return False


class Together(Generic[Item, Answer]):
    """One call for up to `most` items, in the order in which they came; `ask` gives an answer for each."""

    _kind: type[_Awaited[Any]] = _Sure

    def __init__(self, ask: Callable[[Sequence[Item]], Awaitable[Sequence[Answer]]], most: int = MOST) -> None:
        self._ask = ask
        self._most = most
        self._line: list[tuple[Item, _Awaited[Answer]]] = []
        self._asking: asyncio.Task[None] | None = None

    def __call__(self, item: Item) -> Awaitable[Answer]:
        """The answer for this item, asked for by now; a caller that is cancelled still waits for it, then is cancelled."""
        answer: _Awaited[Answer] = self._kind(loop=asyncio.get_running_loop())
        self._line.append((item, answer))
        if self._asking is None or self._asking.done():
            self._asking = begin(self._ask_for_all(), name="tarry group commit")
            self._asking.add_done_callback(self._ended)
        return answer

    def end(self) -> list[asyncio.Task[None]]:
        """Ask no more, and let go of whoever waits; the call under way, which comes to its end and is not repeated."""
        under_way = [] if self._asking is None else [self._asking]
        for asking in under_way:
            asking.cancel()
        self._let_go()
        return under_way

    async def _ask_for_all(self) -> None:
        try:
            while self._line:
                batch, self._line = self._line[: self._most], self._line[self._most :]
                await self._ask_for([(item, waiting) for item, waiting in batch if not waiting.done()])
        finally:
            self._asking = None
            self._let_go()

    def _ended(self, asking: asyncio.Task[None]) -> None:
        if asking is self._asking:  # It was cancelled before it began, and so let go of nobody.
            self._asking = None
            self._let_go()

    def _let_go(self) -> None:
        line, self._line = self._line, []
        _give_up(line)

    async def _ask_for(self, batch: Sequence[tuple[Item, _Awaited[Answer]]]) -> None:
        try:
            answers = await self._ask([item for item, _ in batch]) if batch else []
        except Exception as error:  # noqa: BLE001  # whatever it is, it is the answer that all of them get
            for waiting in _still(batch):
                waiting.set_exception(error)
            return
        except asyncio.CancelledError:
            _give_up(batch)
            raise
        for (_, waiting), answer in zip(batch, answers, strict=True):
            if not waiting.done():
                waiting.set_result(answer)


class Asked(Together[Item, Answer]):
    """As `Together`, of what nobody has to know in the end: a caller who is cancelled leaves at once."""

    _kind = _Awaited


def _nobody(_row: JobRow) -> None:
    """Nobody takes jobs."""


def _still(line: Sequence[tuple[object, _Awaited[Answer]]]) -> list[_Awaited[Answer]]:
    """Those who have not left."""
    return [waiting for _, waiting in line if not waiting.done()]


def _give_up(line: Sequence[tuple[object, _Awaited[Answer]]]) -> None:
    for _, waiting in line:
        waiting.give_up()


class Writer:
    """The store calls that each job makes, one job at a time for the caller and many at once for the store."""

    def __init__(self, store: Store, units: Units, clock: Clock, token: Callable[[], str]) -> None:
        self._store = store
        self._units = units
        self._clock = clock
        self._token = token
        self.checkpoint: Together[Checkpoint, bool] = Together(partial(units.run, store.checkpoint))
        self.reserve: Together[Grip, bool] = Together(partial(units.run, store.reserve))
        self.release: Together[Grip, bool] = Together(self._release)
        self.add: Together[NewJob, Added | TarryError] = Together(self._add, MOST_ADDED)
        self.on_taken: Callable[[JobRow], object] = _nobody
        """Called with each job that was taken as it was made, before whoever made it hears of it: they may have left."""
        self._doubts: set[asyncio.Task[None]] = set()
        self.row: Together[int, JobRow | None] = Together(self._rows)
        self.glance: Together[int, Glance | None] = Together(self._glances)
        self.find: Asked[Name, JobRow | TarryError | None] = Asked(partial(units.ask, _each, store.find))
        self.events: Asked[Since, list[StoredEvent] | TarryError] = Asked(partial(units.run, _each, store.events))
        self.told: Asked[Told, None] = Asked(self._told)
        self._claims: dict[int, Together[int, JobRow | None]] = {}

    async def claim(self, worker: int, job: int) -> JobRow | None:
        """The row of a job that this worker holds from now on, its next poll permitted if that is near.

        None when it cannot be had.
        """
        if worker not in self._claims:
            self._claims = {worker: Together(partial(self._claim, worker))}
        return await self._claims[worker](job)

    def end(self) -> list[asyncio.Task[None]]:
        """Let go of whoever waits: a store that is away would keep them for as long as it is. What is to be waited for."""
        asking: list[Together[Any, Any]] = [
            self.checkpoint,
            self.reserve,
            self.release,
            self.row,
            self.glance,
            self.find,
            self.events,
            self.told,
            *self._claims.values(),
        ]
        for doubt in self._doubts:
            doubt.cancel()
        return [*self._doubts, *(under_way for together in asking for under_way in together.end())]

    async def _add(self, jobs: Sequence[NewJob]) -> Sequence[Added | TarryError]:
        try:
            all_added: Sequence[Added | TarryError] = await self._units.ask(self._store.add_all, jobs)
        except StoreUnavailable:
            self._doubt(jobs)
            raise
        except TarryError:
            # One of them cannot be added, which is nothing to the others.
            all_added = [await self._added(job) for job in jobs]
        for job, added in zip(jobs, all_added, strict=True):
            if not isinstance(added, TarryError):
                self._taken(job, added[0])
        return all_added

    def _taken(self, job: NewJob, row: JobRow) -> None:
        if job.owner is not None and (row.owner, row.nonce) == (job.owner, job.token):
            self.on_taken(row)

    def _doubt(self, jobs: Sequence[NewJob]) -> None:
        """Look for what was taken although no answer came, once the store is back: nobody else knows that it is held."""
        for job in jobs:
            if job.owner is not None:
                doubt = begin(self._settle(job), name="tarry doubt")
                self._doubts.add(doubt)
                doubt.add_done_callback(self._doubts.discard)

    async def _settle(self, job: NewJob) -> None:
        row = await self._units.run(self._store.find, job.namespace, job.key)
        if row is not None:
            self._taken(job, row)

    async def _added(self, job: NewJob) -> Added | TarryError:
        try:
            return await self._units.ask(self._store.add, job)
        except StoreUnavailable as error:
            self._doubt([job])
            return error
        except TarryError as error:
            return error

    async def _release(self, grips: Sequence[Grip]) -> Sequence[bool]:
        return await self._units.run(self._store.release, grips, self._clock.now())

    async def _rows(self, jobs: Sequence[int]) -> Sequence[JobRow | None]:
        found = {row.id: row for row in await self._units.run(self._store.rows, jobs)}
        return [found.get(job) for job in jobs]

    async def _glances(self, jobs: Sequence[int]) -> Sequence[Glance | None]:
        found = {seen.id: seen for seen in await self._units.run(self._store.glance, jobs)}
        return [found.get(job) for job in jobs]

    async def _told(self, told: Sequence[Told]) -> Sequence[None]:
        await self._units.run(self._store.told, told)
        return [None] * len(told)

    async def _claim(self, worker: int, jobs: Sequence[int]) -> Sequence[JobRow | None]:
        now = self._clock.now()
        claimed = await self._units.run(self._store.claim, worker, self._token(), now, jobs, now + RESERVE_WITHIN)
        found = {row.id: row for row in claimed}
        return [found.get(job) for job in jobs]


def _each(call: Callable[..., Answer], items: Sequence[tuple[Any, ...]]) -> list[Answer | TarryError]:
    """What the call says to each: many small looks go to the store's thread and back as one.

    An error is the answer to the item that it is about.
    """
    answers: list[Answer | TarryError] = []
    for item in items:
        try:
            answers.append(call(*item))
        except StoreUnavailable:
            raise
        except TarryError as error:
            answers.append(error)
    return answers
