"""The front door: `Poller`, and `await_job` for one call."""

from __future__ import annotations

import asyncio
import inspect
from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from types import TracebackType
from typing import TYPE_CHECKING, Any, Self

from tarry.chance import token as new_token
from tarry.clock import SystemClock
from tarry.codec import decode_spec, differences, encode_spec, encode_state, fingerprint, state_of
from tarry.core.durations import CENTURY, DurationLike, parse, write
from tarry.core.machine import cancelled, start
from tarry.core.results import Job, JobResult
from tarry.core.spec import JobSpec
from tarry.errors import JobNotFound, KeyConflict, SpecError, StoreError, TarryError
from tarry.http.secrets import Secrets
from tarry.http.transport import AsyncClient, HttpTransport
from tarry.offload import ThreadOffload, inline
from tarry.ports import Clock, Event, JobRow, Listing, NewJob, Offload, Store, StoredEvent, Transport
from tarry.runtime.aside import Aside
from tarry.runtime.bulletin import Bulletin
from tarry.runtime.calls import Calls
from tarry.runtime.drive import Parts
from tarry.runtime.engine import LOOK_EVERY, Engine
from tarry.runtime.units import Units, drained
from tarry.runtime.views import failure, result, snapshot, snapshots
from tarry.runtime.worker import Worker
from tarry.store import open_store
from tarry.words import HOUR, SECOND, Micros, Outcome, Phase, micros, span

if TYPE_CHECKING:
    from sqlalchemy.engine import Engine as DatabaseEngine

_LONGEST_KEY = 512
_LONGEST_NAMESPACE = 255
_CANCEL_TRIES = 20


class Poller:
    """Awaits remote jobs, durably. An async context manager; one event loop, one process.

    - `store`: a database URL (`sqlite:///tarry.db`), a SQLAlchemy `Engine`, or a `Store`
      (one that you made stays yours to close).
    - `client`: an `httpx.AsyncClient` or `httpx2.AsyncClient` of yours, with its auth and
      proxies; it stays yours to close. Without one, Tarry keeps its own.
    - `namespace`: keys are unique within it; this poller sees no other.
    - `secrets`: a mapping or a callable that gives the value of `{secret.NAME}`.
    - `on_event`: called with each `StoredEvent` after its commit; what it raises is logged.
    - `lease`: how long a worker that went silent keeps its jobs (10 s to 1 h).
    - `transport`, `clock`, `offload`, `token`: stand-ins for the world, for tests.

    Raises `SpecError` for arguments that can never work, `StoreError` on entering when
    the store cannot be used. A poller polls the jobs that are awaited through it.
    """

    def __init__(
        self,
        store: str | DatabaseEngine | Store,
        *,
        client: AsyncClient | None = None,
        namespace: str = "default",
        secrets: Mapping[str, str] | Callable[[str], str] | None = None,
        on_event: Callable[[StoredEvent], object] | None = None,
        lease: DurationLike = "30s",
        transport: Transport | None = None,
        clock: Clock | None = None,
        offload: Offload | None = None,
        token: Callable[[], str] = new_token,
    ) -> None:
        if client is not None and transport is not None:
            raise SpecError("Poller.client", "give a client or a transport, not both")
        _check_callback(on_event)
        self._store = open_store(store)
        self._owns_store = self._store is not store
        self._clock = clock or SystemClock()
        self._namespace = _named("Poller.namespace", namespace, _LONGEST_NAMESPACE)
        self._lease = _span("Poller.lease", lease, 10 * SECOND, HOUR)
        self._token = token
        self._thread = ThreadOffload() if offload is None and self._store.blocking else None
        self._units = Units(offload or self._thread or inline, self._clock)
        known = Secrets(secrets)
        self._transport = transport or HttpTransport(client, clock=self._clock, redact=known.redact)
        self._owns_transport = transport is None
        self._aside = Aside()
        self._calls = Calls(self._transport, known, self._clock, self._aside)
        self._bulletin = Bulletin(on_event)
        self._engine: Engine | None = None
        self._closed = False

    async def __aenter__(self) -> Self:
        if self._engine is not None:
            raise TarryError("a poller is entered once; make another one")
        try:
            await self._units.ask(self._store.open, self._clock.now())
        except BaseException:
            self._end_thread()
            raise
        worker = Worker(self._store, self._units, self._clock, self._token, self._lease)
        parts = Parts(
            store=self._store,
            units=self._units,
            clock=self._clock,
            worker=worker,
            calls=self._calls,
            aside=self._aside,
            token=self._token,
            tell=self._bulletin.tell,
        )
        self._engine = Engine(parts)
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """Leave every job as it is, and give the lease back."""
        if self._closed:
            return
        engine, self._closed = self._running, True
        try:
            await drained(self._give_back(engine), engine.hurry)
        finally:
            self._end_thread()

    async def _give_back(self, engine: Engine) -> None:
        self._bulletin.close()
        await engine.close()
        if self._owns_transport:
            await self._transport.aclose()
        if self._owns_store:
            await self._units.ask(self._store.close)

    def _end_thread(self) -> None:
        if self._thread is not None:
            self._thread.close()

    async def await_job(
        self,
        key: str,
        spec: JobSpec | None = None,
        *,
        wait_timeout: DurationLike | None = None,
        raises: bool = True,
    ) -> JobResult[Any]:
        """Wait until the job is over and return its result.

        Creates the job when the key is new, else goes on with the stored one: same
        deadline, counters and due time, nothing submitted twice. `spec=None` attaches to
        a stored job. `wait_timeout` is the caller's patience: it ends this wait with
        `WaitTimeout`, never the job; 0 does what is due now and looks once.

        Raises the `JobError` of the outcome (with `raises=False` returns it as a result instead),
        `JobNotFound`, `KeyConflict`, `CheckpointError`, `WaitTimeout`.
        """
        patience = None if wait_timeout is None else _span("wait_timeout", wait_timeout, 0, CENTURY)
        row = await self._attached(key, spec)
        if row.outcome is None:
            engine = self._running
            job = engine.follow(row, spec)
            try:
                row = await job.wait(patience)
            finally:
                engine.leave(job)
        ended = result(row)
        if raises and not ended.outcome.is_success:
            raise failure(row)
        return ended

    async def add(self, key: str, spec: JobSpec) -> Job:
        """Create the job durably, or find it, and return at once; whoever awaits it polls it.

        Raises `SpecError` for a callable that cannot be imported by name: it could not travel.
        """
        for function in spec.functions:
            if function.inline:
                raise SpecError("JobSpec", f"{function.function} cannot be imported by name; define it in a module")
        return snapshot(await self._attached(key, spec))

    async def get(self, key: str) -> Job:
        """The job as last committed. Raises `JobNotFound`, `CheckpointError`."""
        return snapshot(await self._found(key))

    async def jobs(
        self,
        *,
        outcomes: Sequence[Outcome] = (),
        phases: Sequence[Phase] = (),
        labels: Mapping[str, str] | None = None,
        prefix: str = "",
        after: int = 0,
        limit: int = 100,
    ) -> list[Job]:
        """One page of jobs in the order of creation: those that match every filter given.

        `prefix` is of the key; `after` the `id` of the last job of the page before; `limit` is 1 to 1000.
        A damaged job is left out, with a line in the log; `get` raises `CheckpointError` for it.
        """
        self._running  # noqa: B018  # raises when the poller is not open
        page = Listing(self._namespace, outcomes, phases, labels or {}, prefix, after, min(max(limit, 1), 1000))
        return snapshots(await self._units.ask(self._store.listing, page))

    async def history(self, key: str, after: tuple[int, int] = (0, 0), limit: int = 1000) -> list[StoredEvent]:
        """The stored events past the cursor (run, seq), oldest first. Raises `JobNotFound`."""
        row = await self._found(key)
        return await self._units.ask(self._store.events, self._namespace, row.key, after, limit)

    async def watch(self, key: str, after: tuple[int, int] = (0, 0)) -> AsyncIterator[StoredEvent]:
        """The events past the cursor as they come, from any process, until the job is over.

        Events of this process come at once, others within a second. Raises `JobNotFound`.
        """
        bell = asyncio.Event()
        stop = self._bulletin.listen(key, bell.set)
        try:
            while True:
                bell.clear()
                row = await self._found(key)
                events = await self._units.ask(self._store.events, self._namespace, key, after, 100)
                for event in events:
                    after = (event.run, event.seq)
                    yield event
                if not events and row.outcome is not None:
                    return
                if not events:
                    await _rung(bell)
        finally:
            stop()

    async def cancel(self, key: str) -> Job:
        """End the job as cancelled, here and now; a job that is over stays as it ended.

        The remote side is not told. One poll already permitted may still go out.
        """
        for _ in range(_CANCEL_TRIES):
            row = await self._found(key)
            if row.outcome is not None:
                return snapshot(row)
            now = self._clock.now()
            event = Event(
                "finished", now, {"outcome": "cancelled", "reason": "cancelled here", "polls": row.polls + row.reserved}
            )
            state = encode_state(cancelled(state_of(row), now))
            if await self._units.ask(self._store.cancel, row.id, row.step, state, now, [event]):
                self._running.rouse(row.id)
                self._bulletin.tell([StoredEvent.of(row.key, row.run, row.event_seq + 1, event)])
        raise StoreError(f"job {key!r} moves on faster than it can be cancelled; try again")

    @property
    def _running(self) -> Engine:
        if self._closed:
            raise TarryError("the poller is closed; make another one")
        if self._engine is None:
            raise TarryError("enter the poller first: async with Poller(...) as poller")
        return self._engine

    async def _found(self, key: str) -> JobRow:
        self._running  # noqa: B018  # raises when the poller is not open
        row = await self._units.ask(self._store.find, self._namespace, _named("key", key))
        if row is None:
            raise JobNotFound(f"no job has the key {key!r} in namespace {self._namespace!r}")
        return row

    async def _attached(self, key: str, spec: JobSpec | None) -> JobRow:
        """The stored job of this key, created when the key is new and a spec is given."""
        if spec is not None and not isinstance(spec, JobSpec):
            raise SpecError("spec", f"expected a JobSpec, got {type(spec).__name__}")
        try:
            row = await self._found(key)
        except JobNotFound:
            if spec is None:
                raise
            row, created = await self._units.ask(self._store.add, self._new(key, spec))
            if created:
                self._bulletin.tell(await self._units.ask(self._store.events, self._namespace, key, (0, 0), 1))
        if spec is not None and fingerprint(spec) != row.fingerprint:
            identity = {"input", "args", "poll" if spec.submit is None else "submit"}
            differs = differences(decode_spec(row.spec), spec)
            fields = ", ".join(name for name in differs if name.split(".")[0] in identity) or "its submit or input"
            raise KeyConflict(f"key {key!r} belongs to another job; what differs: {fields}. Use another key")
        return row

    def _new(self, key: str, spec: JobSpec) -> NewJob:
        now = self._clock.now()
        state, _ = start(spec, key, now)
        return NewJob(
            namespace=self._namespace,
            key=key,
            token=self._token(),
            fingerprint=fingerprint(spec),
            spec=encode_spec(spec),
            labels=dict(spec.labels),
            state=encode_state(state),
            phase=state.phase,
            created_at=now,
            due=now if state.due is None else state.due,
            deadline=state.deadline,
            max_polls=spec.limits.max_polls,
            floor=micros(spec.limits.min_interval),
            events=[Event("created", now)],
        )


async def await_job(
    key: str,
    spec: JobSpec | None = None,
    *,
    store: str | DatabaseEngine | Store,
    wait_timeout: DurationLike | None = None,
    raises: bool = True,
    **options: Any,
) -> JobResult[Any]:
    """`Poller.await_job` for one call: opens a poller on `store`, waits, closes it.

    `options` are those of `Poller`. For several jobs make one `Poller`: it shares the store,
    the client and the lease.
    """
    async with Poller(store, **options) as poller:
        return await poller.await_job(key, spec, wait_timeout=wait_timeout, raises=raises)


async def _rung(bell: asyncio.Event) -> None:
    try:
        async with asyncio.timeout(LOOK_EVERY / SECOND):
            await bell.wait()
    except TimeoutError:
        return


def _check_callback(on_event: object) -> None:
    if on_event is None or (callable(on_event) and not inspect.iscoroutinefunction(on_event)):
        return
    raise SpecError("Poller.on_event", f"expected a plain callable, not async, got {type(on_event).__name__}")


def _span(field: str, value: DurationLike, least: Micros, most: Micros) -> Micros:
    try:
        length = micros(parse(value))
    except ValueError as error:
        raise SpecError(field, str(error)) from None
    if not least <= length <= most:
        raise SpecError(field, f"use {write(span(least))} to {write(span(most))}")
    return length


def _named(field: str, text: str, longest: int = _LONGEST_KEY) -> str:
    """A key or namespace: at least a byte of UTF-8, not more than `longest`, and no control character."""
    if not isinstance(text, str):
        raise SpecError(field, f"expected text, got {type(text).__name__}")
    if not text.isprintable():
        raise SpecError(field, "holds control or unprintable characters; use plain text")
    if not 1 <= len(text.encode()) <= longest or text != text.strip():
        raise SpecError(field, f"use 1 to {longest} bytes of UTF-8, without blanks at the ends")
    return text
