"""What the runtime needs from the world: a clock, a transport, a store.

Each port is as small as it can be, and its contract suite is its meaning:
whatever passes the suite may stand in.

`Clock` tells the time and sleeps. `Transport` turns one prepared request into
one observation and never sends it twice. `Store` keeps jobs: each of its methods
is one transaction, is synchronous (the runtime calls it off the event loop),
and may be run again with the same arguments after its answer was lost.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Protocol, TypeAlias

from tarry.deliveries import Deliveries
from tarry.frozen import quick
from tarry.ports.commands import Command as Command
from tarry.ports.commands import Restart as Restart
from tarry.ports.events import Event as Event
from tarry.ports.events import StoredEvent as StoredEvent
from tarry.ports.looks import Glance as Glance
from tarry.ports.looks import Listing as Listing
from tarry.ports.quarantine import CONVICTED as CONVICTED
from tarry.ports.quarantine import QUARANTINED as QUARANTINED
from tarry.ports.quarantine import SUSPECT as SUSPECT
from tarry.ports.world import Clock as Clock
from tarry.ports.world import Offload as Offload
from tarry.ports.world import Prepared as Prepared
from tarry.ports.world import Transport as Transport
from tarry.words import DeliveryKind, Instant, Micros, Outcome, Phase

Place: TypeAlias = tuple[Instant, int]
"""Where a walk along the jobs has come to: (wake, id) of those that are due, (finished_at, id) of those that are over."""

Told: TypeAlias = tuple[int, int, int]
"""A job, its run, and the last event of it that was told."""

Known: TypeAlias = tuple[int, int, int]
"""A job, the worker that holds it, and how many commands it got."""

FIRST: Place = (-(1 << 63), 0)
"""Before every job."""


@dataclass(frozen=True, slots=True)
class NewJob:
    """A job to create. `token` (random) tells this creation from another with the same key.

    `floor` is the spec's `min_interval`: whoever frees a dead worker's job needs it
    without reading the spec. A job that comes from another store brings what it has spent and seen.

    `owner` is a worker that takes the job as it is made, as by `claim` (fence 1, step 1), with the token for its nonce;
    `reserved` is 1 where that permits its first poll. Where that worker is gone by then, the job is nobody's.
    """

    namespace: str
    key: str
    token: str
    fingerprint: str
    spec: str
    labels: Mapping[str, str]
    state: str
    phase: Phase
    created_at: Instant
    due: Instant
    deadline: Instant | None
    max_polls: int | None
    floor: Micros
    polls: int = 0
    polled_at: Instant | None = None
    last: str | None = None
    submit: str | None = None
    timeline: str | None = None
    carried: str | None = None
    baseline: str | None = None
    poll: str | None = None
    status_url: str | None = None
    events: Sequence[Event] = ()
    owner: int | None = None
    reserved: int = 0


@quick
@dataclass(frozen=True, slots=True)
class JobRow:
    """A job as stored.

    `state` is the encoded `JobState`; where a column of the row repeats one of its fields (`polls`,
    `polled_at`, `due`, `deadline`), the column is right. `reserved` is 1 while one poll is permitted;
    `fence`, `nonce` and `step` are the holder's proof; `wake` is when an unowned job wants an owner;
    `cmd` counts commands of users; `paused` is 1 while nobody may poll, and `QUARANTINED` while that is because the
    job killed its process; `strikes` counts the processes that ended while it may have been called in them; `told` is the last event that
    an `on_event` was called with; `spec`, `last`, `submit`, `baseline`, `poll`, `status_url`,
    `validators`, `output`, `timeline` and `carried` are JSON texts.
    """

    id: int
    namespace: str
    key: str
    run: int
    token: str
    fingerprint: str
    spec: str
    labels: Mapping[str, str]
    state: str
    phase: Phase
    owner: int | None
    fence: int
    nonce: str | None
    step: int
    cmd: int
    paused: int
    polls: int
    reserved: int
    polled_at: Instant | None
    created_at: Instant
    due: Instant | None
    wake: Instant | None
    deadline: Instant | None
    max_polls: int | None
    floor: Micros
    strikes: int
    alone: int
    event_seq: int
    told: int
    cancel_requested_at: Instant | None
    last: str | None
    submit: str | None
    baseline: str | None
    poll: str | None
    status_url: str | None
    validators: str | None
    output: str | None
    timeline: str | None
    carried: str | None
    outcome: Outcome | None
    finished_at: Instant | None

    @property
    def grip(self) -> Grip:
        """The holder's proof as it stands in the row; a row that nobody holds gives one that matches nothing."""
        return Grip(self.id, self.fence, self.nonce or "", self.step, self.cmd)


@quick
@dataclass(frozen=True, slots=True)
class Grip:
    """The holder's proof for one write: it counts only while all of it matches the row."""

    job: int
    fence: int
    nonce: str
    step: int
    cmd: int


@quick
@dataclass(frozen=True, slots=True)
class Checkpoint:
    """One committed step of a held job: the new state and the events that go with it.

    None for `spec`, `floor`, `told` and each of the JSON texts from `last` to `carried` leaves what is stored.
    `reserved` is 1 when the same commit also permits the next poll (never with an outcome or
    `release`, never past `max_polls`). `release` gives the job up until `due`. `polls` never falls
    below the column of the row. `deadline` and `max_polls` are written as they are: None is no
    limit. `owed` names the deliveries that go with an outcome.
    """

    grip: Grip
    state: str
    phase: Phase
    polls: int
    polled_at: Instant | None
    due: Instant | None
    deadline: Instant | None = None
    reserved: int = 0
    release: bool = False
    max_polls: int | None = None
    floor: Micros | None = None
    spec: str | None = None
    last: str | None = None
    submit: str | None = None
    baseline: str | None = None
    poll: str | None = None
    status_url: str | None = None
    validators: str | None = None
    output: str | None = None
    timeline: str | None = None
    carried: str | None = None
    outcome: Outcome | None = None
    finished_at: Instant | None = None
    events: Sequence[Event] = ()
    owed: Sequence[DeliveryKind] = ()
    told: int | None = None


class Store(Protocol):
    """Keeps jobs, events and workers; the rules are those of its contract suite.

    Transient faults raise `StoreUnavailable` and the runtime repeats the call
    with the same arguments; nothing else is repeated.
    """

    blocking: bool
    """Whether calls may wait for a disk or a network: they then run off the event loop."""

    deliveries: Deliveries
    """The outbox."""

    def open(self, now: Instant) -> None:
        """Create or migrate the tables; refuse a newer schema or a damaged database."""
        ...

    def close(self) -> None:
        """Give back connections."""
        ...

    def version(self) -> int:
        """A number that is another one after each commit, whoever made it; cheap to ask for.

        Another number may also mean nothing; the same one means that nothing changed.
        """
        ...

    def listen(self, ring: Callable[[], object]) -> Callable[[], None] | None:
        """Call `ring`, from any thread, soon after another process committed an outcome or a command; what ends that.

        A hint: it may come late, for nothing, or never. None where nothing can be heard.
        """
        ...

    # Workers: one row a process incarnation, renewed as one (P6, P7, P9).

    def register(self, uuid: str, now: Instant, ttl: Micros) -> int:
        """A worker row with a lease of `ttl`; its id, never used before. `uuid` is new for each
        incarnation; registered again while alive, it gives the same id.
        """
        ...

    def renew(self, worker: int, now: Instant, ttl: Micros) -> bool:
        """Prolong the lease; False when the worker has been declared dead."""
        ...

    def retire(self, worker: int, now: Instant) -> None:
        """Mark the worker released; jobs it still holds are freed with their permits counted."""
        ...

    def bury(self, worker: int, now: Instant) -> int:
        """Declare dead every other worker whose lease ended (or whose process is known to be
        gone) and free its jobs, counting their permits as polls; how many jobs were freed. A job
        that may have been called just then gets a strike, up to `SUSPECT`; one that was called
        alone gets it alone, and is quarantined at `CONVICTED`.
        """
        ...

    # Holding jobs (P3, P4, P5).

    def claim(
        self, worker: int, nonce: str, now: Instant, jobs: Sequence[int], permit_until: Instant | None = None
    ) -> list[JobRow]:
        """Take those of `jobs` that nobody holds, that are not over and not paused, each with fence+1, step+1.

        With `permit_until` those that wait for a poll that is due by then are permitted it, as by `reserve`.
        """
        ...

    def reserve(self, grips: Sequence[Grip]) -> list[bool]:
        """Permit one poll each, where none is permitted yet and polls < max_polls; step+1.
        True where the permit is there now.
        """
        ...

    def isolate(self, grip: Grip) -> bool:
        """Note, before the call of a suspect, that its worker makes no other call now; True when it is noted.
        It holds until the checkpoint after the call, and the grip stays as it is.
        """
        ...

    def checkpoint(self, writes: Sequence[Checkpoint]) -> list[bool]:
        """Commit all in one transaction; False where nothing was written: the grip no longer
        matched, or (the row is then still as the grip says) this write cannot be stored.
        """
        ...

    def release(self, grips: Sequence[Grip], now: Instant) -> list[bool]:
        """Give up held jobs whose permit, if any, was not used: reserved becomes 0, uncounted;
        fence+1, step+1, wake = due (none while paused). Commands that the holder has not seen
        stand in the row and are no obstacle.
        """
        ...

    # Everyone else.

    def add(self, job: NewJob) -> tuple[JobRow, bool]:
        """Create the job, or find the one with its key; True when this call (or an earlier
        try with the same token) created it. One that is found is not taken.
        """
        ...

    def add_all(self, jobs: Sequence[NewJob]) -> list[tuple[JobRow, bool]]:
        """As `add` for each, in one transaction: where one cannot be added, none is."""
        ...

    def cancel(
        self, job: int, step: int, state: str, now: Instant, events: Sequence[Event], owed: Sequence[DeliveryKind] = ()
    ) -> bool:
        """End a job as cancelled in one compare-and-swap on `step`: polls += reserved, fence+1.
        `owed` names the deliveries that go with it.
        """
        ...

    def fetched(self, job: int, step: int, state: str, output: str | None, events: Sequence[Event]) -> bool:
        """Write what came of fetching the result of a job that is over, in one compare-and-swap on
        `step` that also asks for an output not to be there yet; None: there is still none.
        """
        ...

    def command(self, command: Command) -> bool:
        """Write it in one compare-and-swap on `step` and `cmd`; False when the job moved on or is over,
        and for a repetition: whoever commands then looks at the row again, and finds what it wished.
        The fence stays; an unowned job wakes when due, or not at all while paused.
        """
        ...

    def restart(self, restart: Restart) -> bool:
        """Begin the run in one compare-and-swap on `step` and `cmd`, over or not: run+1, fence+1, step+1, polls = 0,
        nobody's, due. True also for a repetition of the very same one.
        """
        ...

    def ask_to_cancel(self, job: int, run: int, now: Instant, event: Event) -> bool:
        """Remember, once a run, that somebody wants a job that is not over to be cancelled, and owe the
        request. Whoever holds the job is not disturbed.
        """
        ...

    def told(self, told: Sequence[Told]) -> None:
        """Remember how far the events of each job were told; never less than before."""
        ...

    def find(self, namespace: str, key: str) -> JobRow | None:
        """The job with this key, compared by bytes."""
        ...

    def rows(self, jobs: Sequence[int]) -> list[JobRow]:
        """Whole rows by id; ids that are gone are left out."""
        ...

    def due(self, namespace: str, until: Instant, after: Place, limit: int) -> tuple[list[JobRow], Place | None]:
        """Jobs that nobody holds and that want an owner by `until`, in the order of (wake, id), past the place.

        With the place to go on after, None when there are no more. Damaged jobs are left out.
        """
        ...

    def held(self, namespace: str) -> int:
        """How many jobs of the namespace some worker holds."""
        ...

    def prune(self, namespace: str, before: Instant, after: Place, limit: int) -> tuple[int, Place | None]:
        """Forget up to `limit` of the jobs that finished before then, in the order of (finished_at, id), past the place.

        Few enough that nobody waits for long. How many were forgotten, and the place to go on after; None when
        there are no more.
        """
        ...

    def glance(self, jobs: Sequence[int]) -> list[Glance]:
        """What waiters need of jobs they do not hold."""
        ...

    def moved(self, known: Sequence[Known]) -> set[int]:
        """Those of the jobs that another holds by now, or nobody, or that are over or got a command; one that is
        gone is none of them.
        """
        ...

    def listing(self, page: Listing) -> list[JobRow]:
        """One page, in the order of creation."""
        ...

    def events(self, namespace: str, key: str, after: tuple[int, int], limit: int) -> list[StoredEvent]:
        """Events past the cursor (run, seq), oldest first. Old ones are dropped: a cursor before
        the oldest gets an event of kind "gap" first, counting `missed` events.
        """
        ...
