"""The world of one seed: a service, a database, processes that come and go, and time that jumps.

First a time of faults, in which nothing may be wrong (safety); then calm, in which everything
must come to its end (liveness). All that happens follows from the seed.
"""

from __future__ import annotations

import asyncio
import logging
import sqlite3
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cache
from hashlib import blake2b
from random import Random
from typing import TYPE_CHECKING, Any

from tarry.errors import StoreUnavailable
from tarry.ports import Offload, Store
from tarry.store import SqlStore
from tarry.store.locks import NoLocks
from tarry.testing import FakeClock, NothingToWaitFor
from tarry.words import MILLISECOND, SECOND, Instant, Micros
from tests.simulation.faults import FaultyMemory, Killed, Rates, SideLocks
from tests.simulation.ledger import Ledger
from tests.simulation.loop import ShuffledLoop
from tests.simulation.processes import Process
from tests.simulation.scenario import Story, stories
from tests.simulation.service import Service

if TYPE_CHECKING:
    from tests.simulation.mutants import Mutant

STORM: Micros = 35 * SECOND
BOUND: Micros = 400 * SECOND
"""How long after the last fault the last job may end: the longest remote job, deadline, wait and lease together."""
_SETTLING = 60 * SECOND
_EXCERPT = 60


@dataclass(frozen=True, slots=True)
class Broken:
    """A rule that did not hold."""

    rule: str
    detail: str
    at: Instant


@dataclass(frozen=True, slots=True)
class Report:
    """What came of one seed."""

    seed: int
    trace: str
    seen: Counter[str]
    broken: list[Broken]
    lines: list[str]
    spent: Micros

    def __str__(self) -> str:
        if not self.broken:
            return f"seed {self.seed}: every rule held; trace {self.trace}, {len(self.lines)} lines"
        first = self.broken[0]
        excerpt = "\n".join(f"    {line}" for line in self.lines[-_EXCERPT:])
        return (
            f"seed {self.seed} broke the rule: {first.rule}\n  {first.detail}\n"
            f"  replay it: python tests/simulation/run.py {self.seed}\n{excerpt}"
        )


def simulate(seed: int, mutant: type[Mutant] | None = None) -> Report:
    """Run one seed to the end, or to the first rule broken: with a mutant, the first of those that it should break."""
    return World(seed, None if mutant is None else mutant()).run()


class World:
    """Everything outside the processes. `rates` are the faults of now, `ledger` judges, `note` writes the trace."""

    def __init__(self, seed: int, mutant: Mutant | None = None) -> None:
        self.seed = seed
        self.chance = Random(f"{seed}/world")
        self.clock = FakeClock(loop=lambda clock: ShuffledLoop(clock, Random(f"{seed}/order")))
        self.stories = stories(self.chance)
        self.rates = Rates.drawn(self.chance)
        self.service = Service(
            self,
            {story.key: story.fate for story in self.stories},
            {story.key: story.idempotent for story in self.stories},
        )
        self.store_down = False
        self.is_calm = False
        self.ledger = Ledger(self)
        self._mutant = mutant
        self._database, store, sql = _database()
        self.sql = _emptied(sql)
        self._shared = store if mutant is None else mutant.store(store, sql)
        self._database.hook = self._on_transaction
        self._locks = SideLocks()
        self._database.locks = self._locks if self.chance.random() < 0.5 else NoLocks()
        self._acting: Process | None = None
        self._processes: list[Process] = []
        self._seen: Counter[str] = Counter()
        self._lines: list[str] = []
        self._broken: list[Broken] = []
        self._wanted = None if mutant is None else mutant.breaks
        self._is_over = False
        self._start = self.clock.now()

    @property
    def loop(self) -> ShuffledLoop:
        """The running loop."""
        loop = asyncio.get_running_loop()
        assert isinstance(loop, ShuffledLoop)
        return loop

    def run(self) -> Report:
        """From the first process to the last check."""
        with _no_errors_logged(self):
            try:
                self.clock.run(self._play)
            except NothingToWaitFor as stuck:
                self.broken("nothing is stuck", str(stuck))
        trace = blake2b("\n".join(self._lines).encode(), digest_size=8).hexdigest()
        return Report(self.seed, trace, self._seen, self._broken, self._lines, self.clock.now() - self._start)

    # What processes, ports and the ledger use.

    def note(self, process: Process | None, text: str) -> None:
        """One line of the trace."""
        if not self._is_over:
            self._lines.append(f"{(self.clock.now() - self._start) / SECOND:10.6f} {process or 'world'}: {text}")

    def saw(self, what: str) -> None:
        """Something that has to happen in some seed, or the simulation shows nothing."""
        self._seen[what] += 1

    def broken(self, rule: str, detail: str) -> None:
        """A rule did not hold."""
        if not self._is_over and all(rule != known.rule for known in self._broken):
            self.note(None, f"BROKEN: {rule}: {detail}")
            self._broken.append(Broken(rule, detail, self.clock.now()))

    @property
    def _is_decided(self) -> bool:
        """Whether there is no point in going on."""
        return any(self._wanted is None or broken.rule in self._wanted for broken in self._broken)

    def story(self, key: str) -> Story:
        """The job with this key."""
        return next(story for story in self.stories if story.key == key)

    def store_for(self, process: Process) -> Store:
        """The store as one process has it: all share one database."""
        return self._shared

    def offload_for(self, offload: Offload) -> Offload:
        """How one process calls its store."""
        return offload if self._mutant is None else self._mutant.offload(offload)

    def lease_of(self, process: Process) -> Instant:
        """Until when the process's lease runs, by the database; 0 without one."""
        live = "SELECT lease_until FROM tarry_worker WHERE id = ? AND dead = 0 AND released = 0"
        found = self.sql.execute(live, (process.worker,)).fetchone()
        return 0 if found is None else int(found[0])

    def acting(self, process: Process | None) -> None:
        """Whose store call runs, for faults between its transactions."""
        self._acting = self._locks.taking = process

    async def never(self) -> None:
        """For code of a process that is dead: it goes no further, until the world ends."""
        await self.clock.sleep(0)
        raise asyncio.CancelledError

    def kill(self, process: Process) -> None:
        """As kill -9 does: at once, in the middle of whatever it does."""
        if process.dead or process.gone:
            return
        doing = process.busy[-1] if process.busy else "sleep"
        process.dead, process.runs = True, False
        self.saw(f"killed in {doing}")
        self.note(process, f"is killed in {doing}")

    def pause(self, process: Process, span: Micros) -> None:
        """As a stop signal does, and a continue signal after a while."""
        if process.runs and not process.gone:
            process.runs = False
            self.saw("pause")
            self.note(process, f"is stopped for {span // SECOND} s")
            self.loop.outside(span, self._go_on, process)

    def _go_on(self, process: Process) -> None:
        if not process.dead and not process.runs:
            self.note(process, "goes on")
            self.loop.thaw(process)

    def _on_transaction(self, moment: str) -> None:
        """A fault on either side of one COMMIT."""
        if self._acting is None:
            return
        process = self._acting
        if self.chance.random() < self.rates.store_kill:
            self.saw("killed in commit")
            self.kill(process)
            raise Killed
        if moment == "begin" and self.chance.random() < self.rates.commit_before:
            raise StoreUnavailable("the transaction did not begin")
        if moment == "committed" and self.chance.random() < self.rates.commit_after:
            self.saw("lost COMMIT")
            raise StoreUnavailable("the answer to COMMIT was lost")

    # The play.

    async def _play(self) -> None:
        self.loop.set_exception_handler(self._unhandled)
        for story in self.stories:
            if not story.submits:
                self.service.make(story.key, story.key)
        self._first()
        await self._storm()
        await self._calm()
        await self._settle()
        await self._clear()

    def _first(self) -> None:
        for _ in range(self.chance.choice((2, 2, 3))):
            self._begin()

    def _begin(self) -> None:
        process = Process(self, f"p{len(self._processes) + 1}")
        self.note(process, "starts")
        self._processes.append(process)

    @property
    def _alive(self) -> list[Process]:
        return [process for process in self._processes if not process.dead and not process.gone]

    async def _storm(self) -> None:
        """Faults, until it is over or something broke."""
        until = self.clock.now() + STORM
        while self.clock.now() < until and not self._is_decided:
            await self.clock.sleep(self.chance.randint(200, 6000) * MILLISECOND)
            self._strike()
            if len(self._alive) < 2 and self.chance.random() < 0.6:
                self._begin()

    def _strike(self) -> None:
        """One blow."""
        process = self.chance.choice(self._alive) if self._alive else None
        match self.chance.choice(("kill", "doom", "drowse", "drowse", "pause", "pause", "stop", "outage")):
            case "kill" if process is not None:
                self.kill(process)
            case "doom" if process is not None:
                process.doomed = True
            case "drowse" if process is not None:
                process.drowsy = True
            case "pause" if process is not None:
                self.pause(process, self.chance.choice((1, 8, 14, 25)) * SECOND)
            case "stop" if process is not None:
                self.note(process, "is asked to end")
                process.stop()
            case "outage" if not self.store_down:
                self.note(None, "the store goes away")
                self.saw("outage")
                self.store_down = True
                self.loop.outside(self.chance.choice((1, 4, 12)) * SECOND, self._store_is_back)

    def _store_is_back(self) -> None:
        self.note(None, "the store is back")
        self.store_down = False

    async def _calm(self) -> None:
        """No more faults: every job must come to its end, through whoever is left."""
        self.note(None, "calm")
        self.rates = Rates()
        self.is_calm = True
        self._store_is_back()
        for process in self._alive:
            process.doomed = process.drowsy = False
            self._go_on(process)
        if all(process.is_stopping for process in self._alive):
            self._begin()
        for process in self._alive:
            process.calm()
        until = self.clock.now() + BOUND
        while not self._is_decided and not self._is_done():
            if not any(process.is_waiting for process in self._alive):
                # A job was begun anew just as everybody had heard of its end, or was ended by one that left at once.
                self._begin()
                self._alive[-1].calm()
            await self.clock.sleep(SECOND // 4)
            if self.clock.now() > until:
                self.broken("every job ends in the calm", self._left())
                return

    def _is_done(self) -> bool:
        """Every job is over, what is owed was tried, and everybody who waited has gone home knowing it."""
        rows = self.ledger.rows.values()
        is_over = len(rows) == len(self.stories) and all(row.outcome for row in rows)
        return is_over and not self._alive and not self._owed()

    def _owed(self) -> list[tuple[str, int]]:
        """What was not even tried yet: a kind and a job each."""
        return self.sql.execute("SELECT kind, job FROM tarry_outbox WHERE tries = 0").fetchall()

    async def _settle(self) -> None:
        """Nothing is left of anyone."""
        if not self._broken:
            for row in self.ledger.rows.values():
                if row.owner is not None or row.reserved:
                    self.broken("nothing is left behind", self._left())
            for kind, job in self._owed():
                self.broken("what is owed is tried", f"{kind} of job {job}")
            names = [task.get_name() for task in asyncio.all_tasks() if self._is_litter(task)]
            if names:
                self.broken("nothing is left behind", f"running: {', '.join(sorted(names))}")

    def _is_litter(self, task: asyncio.Task[Any]) -> bool:
        """Whether it should have ended with its process."""
        owner = self.loop.owners.get(task)
        return isinstance(owner, Process) and not owner.dead

    async def _clear(self) -> None:
        """Let the dead fall, so that the loop can close; they are past having any effect."""
        self._is_over = True
        for process in self._processes:
            process.over = True
            if not process.runs:
                self.loop.thaw(process)
        for process in self._processes:
            await process.buried()

    def _left(self) -> str:
        rows = [f"{row.key}: {row.outcome or row.phase}, owner {row.owner}" for row in self.ledger.rows.values()]
        return f"{'; '.join(rows)}; alive: {', '.join(map(str, self._alive)) or 'nobody'}"

    def _unhandled(self, _: asyncio.AbstractEventLoop, trouble: dict[str, Any]) -> None:
        self.broken("no error is left unheard", f"{trouble.get('message')} {trouble.get('exception')!r}")


@cache
def _database() -> tuple[FaultyMemory, SqlStore, sqlite3.Connection]:
    """One database for all seeds, since statements are compiled for each anew, and the driver's own connection to it."""
    database = FaultyMemory()
    store = SqlStore(database)
    store.open(0)
    found = database._engine.raw_connection().driver_connection
    assert isinstance(found, sqlite3.Connection)
    return database, store, found


def _emptied(sql: sqlite3.Connection) -> sqlite3.Connection:
    """As if it had just been made: ids begin at 1 again."""
    for table in ("tarry_job", "tarry_event", "tarry_outbox", "tarry_spec", "tarry_worker", "sqlite_sequence"):
        sql.execute(f"DELETE FROM {table}")
    return sql


class _Listener(logging.Handler):
    def __init__(self, world: World) -> None:
        super().__init__(logging.ERROR)
        self._world = world

    def emit(self, record: logging.LogRecord) -> None:
        self._world.broken("no error is logged", record.getMessage())


@contextmanager
def _no_errors_logged(world: World) -> Iterator[None]:
    """Warnings are part of the game; an error would be the library's own."""
    log, listener = logging.getLogger("tarry"), _Listener(world)
    before = log.propagate, log.level
    log.addHandler(listener)
    log.propagate = False
    log.setLevel(logging.ERROR)
    try:
        yield
    finally:
        log.removeHandler(listener)
        log.propagate, log.level = before[0], before[1]
