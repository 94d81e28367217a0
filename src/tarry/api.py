"""The front door: `Poller`, and `await_job` for one call."""

from __future__ import annotations

from collections.abc import AsyncGenerator, Callable, Mapping, Sequence
from types import TracebackType
from typing import TYPE_CHECKING, Any, Self, Unpack

from tarry.chance import token as new_token
from tarry.clock import SystemClock
from tarry.core.durations import CENTURY, DurationLike
from tarry.core.limits import Limits
from tarry.core.politeness import Politeness
from tarry.core.results import Job, JobResult, Ticked
from tarry.core.spec import JobSpec
from tarry.core.strategies import Strategy
from tarry.core.typed import Output, OutputType, adapter_of
from tarry.deliveries import Delivery
from tarry.errors import SpecError, TarryError
from tarry.http.clients import Client
from tarry.http.secrets import Secrets
from tarry.http.transport import HttpTransport
from tarry.offload import ThreadOffload, inline
from tarry.ports import Clock, Listing, Offload, Store, StoredEvent, Transport
from tarry.runtime.arguments import check_callback, check_travels, keep_of, namespace_of, patience_of, polite, span_of
from tarry.runtime.aside import Aside
from tarry.runtime.attaching import Reuse
from tarry.runtime.bulletin import Bulletin
from tarry.runtime.calls import Calls
from tarry.runtime.drive import Parts
from tarry.runtime.health import Health
from tarry.runtime.herald import Herald
from tarry.runtime.hosts import Hosts, in_flight_of
from tarry.runtime.inside import Inside
from tarry.runtime.options import Options
from tarry.runtime.units import Units, drained
from tarry.runtime.views import snapshot, snapshots
from tarry.runtime.worker import SHORTEST_LEASE, Worker
from tarry.runtime.writer import Writer
from tarry.store import open_store
from tarry.words import HOUR, Outcome, Phase

if TYPE_CHECKING:
    from sqlalchemy.engine import Engine as DatabaseEngine


class Poller:
    """Awaits remote jobs, durably. An async context manager; one event loop, one process.

    - `store`: a database URL (`sqlite:///tarry.db`), a SQLAlchemy `Engine`, or a `Store` (stays yours to close).
    - `client`: an AsyncClient of httpx or httpx2, or a ClientSession of aiohttp, with its auth and proxies: it stays
      yours to close. Or "aiohttp", "httpx2" or "httpx" (if not given): Tarry keeps its own of that library.
    - `namespace`: keys are unique within it; this poller sees no other.
    - `secrets`: a mapping or a callable that gives the value of `{secret.NAME}`.
    - `on_event`: called with each `StoredEvent` after its commit, at least once: after a crash those that may not
      have been told are told again, by whoever polls or awaits the job next. What it raises is logged.
    - `lease`: how long a worker that went silent keeps its jobs (20 s to 1 h).
    - `keep_finished`: how long jobs that are over are kept; while `run` runs, older ones are forgotten as by `prune`.
    - `politeness`: the bounds of its calls to one host, over all jobs; `Politeness()` if not given.
    - `transport`, `clock`, `offload`, `token`: stand-ins for the world, for tests.

    Raises `SpecError` for arguments that can never work, `StoreError` on entering when
    the store cannot be used. A poller polls the jobs that are awaited through it, and
    others only while `run` runs.
    """

    def __init__(
        self,
        store: str | DatabaseEngine | Store,
        *,
        client: Client | None = None,
        namespace: str = "default",
        secrets: Mapping[str, str] | Callable[..., str] | None = None,
        on_event: Callable[[StoredEvent], object] | None = None,
        lease: DurationLike = "30s",
        politeness: Politeness | None = None,
        keep_finished: DurationLike | None = None,
        transport: Transport | None = None,
        clock: Clock | None = None,
        offload: Offload | None = None,
        token: Callable[[], str] = new_token,
    ) -> None:
        if client is not None and transport is not None:
            raise SpecError("Poller.client", "give a client or a transport, not both")
        check_callback(on_event)
        self._store = open_store(store)
        self._owns_store = self._store is not store
        self._clock = clock or SystemClock()
        self._namespace = namespace_of(namespace)
        self._lease = span_of("Poller.lease", lease, SHORTEST_LEASE, HOUR)
        self._keep = keep_of(keep_finished)
        self._token = token
        self._thread = ThreadOffload() if offload is None and self._store.blocking else None
        self._units = Units(offload or self._thread or inline, self._clock)
        known = Secrets(secrets)
        self._transport = transport or HttpTransport(client, clock=self._clock, redact=known.redact)
        self._owns_transport = transport is None
        self._aside = Aside()
        self._hosts = Hosts(polite(politeness), self._clock, in_flight_of(self._transport))
        self._calls = Calls(self._transport, known, self._clock, self._aside, self._hosts)
        self._bulletin = Bulletin(on_event)
        self._entered: Inside | None = None
        self._closed = False

    async def __aenter__(self) -> Self:
        if self._entered is not None:
            raise TarryError("a poller is entered once; make another one")
        try:
            await self._units.ask(self._store.open, self._clock.now())
        except BaseException:
            # Cancelled while the store opened, it is open by now.
            try:
                if self._owns_store:
                    await self._units.ask(self._store.close)
            finally:
                self._end_thread()
            raise
        writer = Writer(self._store, self._units, self._clock, self._token)
        parts = Parts(
            store=self._store,
            units=self._units,
            clock=self._clock,
            worker=Worker(self._store, self._units, self._clock, self._token, self._lease),
            calls=self._calls,
            hosts=self._hosts,
            aside=self._aside,
            token=self._token,
            herald=Herald(self._bulletin, writer, self._namespace),
            namespace=self._namespace,
            writer=writer,
        )
        self._entered = Inside.of(parts, self._bulletin, self._namespace, self._keep)
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """Leave every job as it is, and give the lease back."""
        if self._closed:
            return
        inside, self._closed = self._inside, True
        try:
            await drained(self._give_back(inside), inside.engine.hurry)
        finally:
            self._end_thread()

    async def _give_back(self, inside: Inside) -> None:
        self._bulletin.close()
        await inside.waiting.close()
        await inside.engine.close()
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
        reuse: Reuse = "attach",
        output_type: OutputType[Output] | None = None,
    ) -> JobResult[Output]:
        """Wait until the job is over and return its result.

        Creates the job when the key is new, else goes on with the stored one: same
        deadline, counters and due time, nothing submitted twice. `spec=None` attaches to
        a stored job. `wait_timeout` is the caller's patience: it ends this wait with
        `WaitTimeout`, never the job, and a store that does not answer counts as well; 0 does what is due now and
        looks once.

        `reuse` says what becomes of a key that exists. "attach" joins it. "refuse" raises `KeyConflict`.
        "restart_failed" begins a job anew that ended otherwise than well: one that ended by a limit here (timed_out,
        exhausted, unreachable, lost) follows the same remote job with fresh limits, any other is submitted anew; a
        submit_unknown stays an error, for `reset` to settle. "restart" submits every job anew that is over, and refuses
        one that still goes on with `KeyConflict`. What is submitted anew may have another spec.

        Where the spec has a `fetch`, the result is fetched after the job has succeeded, by this wait or, if
        `ResultUnavailable` was raised, by the next.

        With an `output_type` (a pydantic model, a dataclass, a TypedDict, `list[int]`, …; or a
        `TypeAdapter`) the output of a job that has succeeded is validated, and is that.

        Raises the `JobError` of the outcome (with `raises=False` returns it as a result instead),
        `JobNotFound`, `KeyConflict`, `CheckpointError`, `WaitTimeout`, `ResultInvalid`.
        """
        patience, adapter = patience_of(wait_timeout), adapter_of(output_type)
        return await self._inside.waiting.one(key, spec, adapter, reuse=reuse, patience=patience, raises=raises)

    async def await_all(
        self,
        specs: Mapping[str, JobSpec | None],
        *,
        wait_timeout: DurationLike | None = None,
        reuse: Reuse = "attach",
    ) -> dict[str, JobResult[Any] | TarryError]:
        """Wait for several jobs at once; what became of each, by key, in the order given.

        A job that ended well is there with its `JobResult`, any other with the error that `await_job` would have
        raised for it, as a value: one failure hurts no other. After `wait_timeout`, the jobs that are not over are
        there with a `WaitTimeout`. `None` in place of a spec attaches to a stored job.
        """
        return await self._inside.waiting.all(specs, reuse=reuse, patience=patience_of(wait_timeout))

    async def add(self, key: str, spec: JobSpec, *, reuse: Reuse = "attach") -> Job:
        """Create the job durably, or find it, and return at once; whoever awaits it polls it. `reuse` as in `await_job`.

        Raises `SpecError` for a callable that cannot be imported by name: it could not travel.
        """
        check_travels(spec)
        return snapshot(await self._inside.attaching.row(key, spec, reuse))

    async def dead_letters(self, after: int = 0, limit: int = 100) -> list[Delivery]:
        """What was owed after the end of a job, and is not tried any more: one page, `after` an `id`. `error` says why."""
        return await self._inside.engine.outbox.undelivered(after, limit)

    async def redeliver(self, key: str) -> int:
        """Have the dead letters of a job tried again, as if for the first time; how many there were.

        Sends a cancel again, too: whoever asks for it decides that this is right.
        """
        count = await self._inside.engine.outbox.redeliver((await self._inside.jobs.found(key)).key)
        await self._inside.engine.deliver()
        return count

    async def get(self, key: str) -> Job:
        """The job as last committed. Raises `JobNotFound`, `CheckpointError`."""
        return snapshot(await self._inside.jobs.found(key))

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
        page = Listing(self._namespace, outcomes, phases, labels or {}, prefix, after, min(max(limit, 1), 1000))
        return snapshots(await self._inside.jobs.listed(page))

    async def history(self, key: str, after: tuple[int, int] = (0, 0), limit: int = 1000) -> list[StoredEvent]:
        """The stored events past the cursor (run, seq), oldest first. Raises `JobNotFound`."""
        jobs = self._inside.jobs
        await jobs.found(key)
        return await jobs.events(key, after, limit)

    def watch(self, key: str, after: tuple[int, int] = (0, 0)) -> AsyncGenerator[StoredEvent]:
        """The events past the cursor as they come, from any process, until the job is over.

        Events of this process come at once, others within a second. Raises `JobNotFound`.
        """
        return self._inside.jobs.watch(key, after)

    async def cancel(self, key: str, *, remote: bool = True) -> Job:
        """Ask the service to cancel the job, or end it here; a job that is over stays as it ended.

        Where the spec has a `cancel` and the job may have been submitted, that request is sent, once, and nothing ends
        yet: polling goes on until the job says how it ended, or a limit does. One that fails is an event, no error.
        Else, or with `remote=False`, the job is cancelled here and now. One poll already permitted may still go out.
        """
        row = await self._inside.commands.cancel(key, remote=remote)
        if row.outcome is None:
            await self._inside.engine.deliver()
        return snapshot(row)

    async def nudge(self, key: str) -> Job:
        """Look now: bring the next poll forward, as after a webhook or a person's key press.

        Never through the floor, nor through a wait that a 429 or 503 asked for. The poll decides, so a lost, late or
        forged nudge changes nothing. A paused job is polled when it goes on; one that is over stays as it ended.
        """
        return snapshot(await self._inside.commands.nudge(key))

    async def update(self, key: str, *, strategy: Strategy | None = None, limits: Limits | None = None) -> Job:
        """Change how a job waits; whoever polls it goes by it from its next poll on.

        The wait under way stays as long as it was meant to be, unless a new deadline cuts it (`nudge` ends it). A
        deadline counts from the job's creation: one that has passed leaves the job one closing poll, `max_polls` that
        are spent leave it none. A job that is over stays as it ended.
        """
        return snapshot(await self._inside.commands.update(key, strategy, limits))

    async def pause(self, key: str) -> Job:
        """Poll no more until `resume`; whoever awaits the job waits on.

        One poll already permitted may still go out, and its answer counts. The deadline goes on, and ends the job
        only after `resume`. A job that is over stays as it ended.
        """
        return snapshot(await self._inside.commands.pause(key))

    async def resume(self, key: str) -> Job:
        """Poll a paused job again, when its next poll is due; at once, if that has passed."""
        return snapshot(await self._inside.commands.resume(key))

    async def run(self, *, until_idle: bool = False) -> None:
        """Be a worker: poll whatever is due in this namespace, until cancelled or the poller closes.

        Any number of processes may do so on one store; each job is polled by one of them. What
        sleeps longer than 30 s is not in memory. A job whose callables are not known here, or whose
        row is damaged, is left alone. With `until_idle`, returns once no job is left but those.
        """
        await self._inside.work(until_idle=until_idle)

    async def health(self) -> Health:
        """How this poller is doing now: its lease, what it holds, what is late. Asks no store, and waits for nothing."""
        return self._inside.monitor.look()

    async def run_once(self, limit: int = 1000) -> int:
        """One round of a worker: do what is due now for up to `limit` jobs; how many they were.

        Each is submitted or polled as far as it is due, then given back: for a cron job, say.
        """
        return await self._inside.sweep.once(limit)

    async def tick(self, key: str) -> Ticked:
        """One step of one job, for a queue or a cron that owns the schedule: call again at `next_at`.

        Polls if the job is due and nobody else holds it, and gives it back at once. Too early
        a call polls nothing. Raises `JobNotFound`, `CheckpointError`.
        """
        return await self._inside.tick(key)

    async def prune(self, older_than: DurationLike) -> int:
        """Forget the jobs that have been over for longer than this; how many they were.

        In short transactions, so that nobody waits for long. A job that goes on is never touched.
        """
        age = span_of("older_than", older_than, 0, CENTURY)
        return await self._inside.jobs.prune(self._clock.now() - age)

    async def reset(self, key: str, *, resubmit: bool = False, submit_answer: Mapping[str, Any] | None = None) -> Job:
        """Begin a new run of a job, over or not, with fresh limits and counters; whoever awaits it waits on for that.

        By itself it follows the same remote job. `resubmit=True` submits anew, under a new idempotency key: the last
        remote job, if there is one, is left to itself. `submit_answer` settles a submit whose answer was lost, once
        you know it: the body, or a mapping of `status`, `headers`, `body` and `url`. What a process that still polls
        the last run writes is refused; one poll already permitted may still go out. Raises `StoreError` where nobody
        knows of a remote job to follow.
        """
        return snapshot(await self._inside.resets.reset(key, resubmit=resubmit, answer=submit_answer))

    async def export(self, key: str) -> str:
        """A token with which the job goes on in another store: its spec, state, deadline and counters, as JSON text.

        The job is paused here for good, so that two do not poll it; what is on its way is waited for. Without
        secrets, but with the submit's answer: treat it as you treat that. Raises `StoreError` for a job that is over,
        `SpecError` for callables that have no importable name.
        """
        return await self._inside.moving.export(key)

    async def import_job(self, token: str) -> Job:
        """Store the job of a token, under its key in this namespace, to go on as if nothing had happened.

        Again is fine; where the token came from it resumes the job. Raises `CheckpointError` for a token that is
        damaged or newer, `KeyConflict` when another job has the key.
        """
        return snapshot(await self._inside.moving.take(token))

    @property
    def _inside(self) -> Inside:
        if self._closed:
            raise TarryError("the poller is closed; make another one")
        if self._entered is None:
            raise TarryError("enter the poller first: async with Poller(...) as poller")
        return self._entered


async def await_job(
    key: str,
    spec: JobSpec | None = None,
    *,
    store: str | DatabaseEngine | Store,
    wait_timeout: DurationLike | None = None,
    raises: bool = True,
    reuse: Reuse = "attach",
    output_type: OutputType[Output] | None = None,
    **options: Unpack[Options],
) -> JobResult[Output]:
    """`Poller.await_job` for one call: opens a poller on `store`, waits, closes it.

    `options` are those of `Poller`. For several jobs make one `Poller`: it shares the store,
    the client and the lease.
    """
    async with Poller(store, **options) as poller:
        return await poller.await_job(
            key, spec, wait_timeout=wait_timeout, raises=raises, reuse=reuse, output_type=output_type
        )
