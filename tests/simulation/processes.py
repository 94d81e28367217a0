"""A process: a poller, the callers in it, and the ways in which it can stop."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from random import Random
from typing import TYPE_CHECKING, Any

from tarry import Poller
from tarry.core.spec import JobSpec
from tarry.errors import JobNotFound, StoreError, StoreUnavailable, TarryError, WaitTimeout
from tarry.words import MILLISECOND, SECOND
from tests.simulation.faults import SimClock, SimOffload
from tests.simulation.ledger import LEASE, LET_GO
from tests.simulation.loop import owner_of
from tests.simulation.scenario import Story
from tests.simulation.service import SimTransport

if TYPE_CHECKING:
    from tests.simulation.world import World


class Process:
    """One incarnation of a program that awaits the world's jobs.

    `runs` is false while it is frozen or dead; `dead` for ever after a kill; `doomed` is one
    that will be killed in the middle of its next call to the service, `drowsy` one that will be stopped there.
    What it does right now is in `busy`, innermost last.
    """

    def __init__(self, world: World, name: str) -> None:
        self.name = name
        self.runs = True
        self.dead = False
        self.doomed = False
        self.drowsy = False
        self.over = False
        self.gone = False
        self.worker: int | None = None
        self.busy: list[str] = []
        self.kept: list[asyncio.Handle] = []
        self.heard: set[tuple[int, int]] = set()
        self._world = world
        self._chance = Random(f"{world.seed}/{name}")
        self._callers: list[asyncio.Task[Any]] = []
        self._stop = asyncio.Event()
        self._calm = asyncio.Event()
        token = owner_of.set(self)
        self._main = asyncio.create_task(self._run(), name=name)
        owner_of.reset(token)

    def __str__(self) -> str:
        return self.name

    @contextmanager
    def doing(self, what: str) -> Iterator[None]:
        """What it is killed in the middle of, if it is."""
        self.busy.append(what)
        try:
            yield
        finally:
            self.busy.remove(what)

    def leave_if_over(self) -> None:
        """The world ends: what is left of a dead process must not go on."""
        if self.over:
            raise asyncio.CancelledError

    @property
    def is_stopping(self) -> bool:
        """Whether it was asked to end."""
        return self._stop.is_set()

    def stop(self) -> None:
        """Ask it to end in good order."""
        self._stop.set()

    @property
    def is_waiting(self) -> bool:
        """Whether one of its callers still waits for a job, and so has it polled."""
        return not self._callers or any(not each.done() for each in self._callers if " waits for " in each.get_name())

    def calm(self) -> None:
        """From now on its callers wait until the end."""
        self._calm.set()

    async def buried(self) -> None:
        """After the end of the world: clear away what is left."""
        self.over = True
        self._main.cancel()
        await asyncio.wait({self._main})

    async def _run(self) -> None:
        world = self._world
        poller = Poller(
            world.store_for(self),
            transport=SimTransport(world, self),
            clock=SimClock(world, self),
            offload=world.offload_for(SimOffload(world, self)),
            token=self._token,
            on_event=lambda event: world.ledger.heard(self, event),
        )
        # Shorter than a person may ask for: no call takes long here, and what comes of a lease's end happens more often.
        poller._lease = LEASE
        try:
            async with poller:
                await self._live(poller)
            # Those that the closed poller turned away, and those that were not even waiting.
            await _cancelled(self._callers)
        except StoreUnavailable:
            world.note(self, "gave up: the store was away for long")
        except Exception as error:  # noqa: BLE001  # whatever it is, it should not have come this far
            world.broken("a process lives through every fault", f"{self}: {type(error).__name__}: {error}")
        finally:
            self.gone = True

    async def _live(self, poller: Poller) -> None:
        callers = self._callers = [
            asyncio.create_task(self._caller(poller, story), name=f"{self} waits for {story.key}")
            for story in self._world.stories
            for _ in range(self._chance.choice((1, 1, 2)))
        ]
        if self._chance.random() < 0.35:
            callers.append(asyncio.create_task(self._watcher(poller), name=f"{self} watches"))
        if self._chance.random() < 0.4 or self._world.is_calm:
            callers.append(asyncio.create_task(self._worker(poller), name=f"{self} works"))
        if self._chance.random() < 0.04:
            callers.append(asyncio.create_task(self._cancel(poller), name=f"{self} cancels"))
        if self._chance.random() < 0.4:
            callers.append(asyncio.create_task(self._user(poller), name=f"{self} commands"))
        callers.append(asyncio.create_task(self._resume(poller), name=f"{self} lets all go on"))
        stop = asyncio.create_task(self._stop.wait(), name=f"{self} stops")
        going: set[asyncio.Task[Any]] = {stop, *callers}
        while not stop.done() and len(going) > 1:
            _, going = await asyncio.wait(going, return_when=asyncio.FIRST_COMPLETED)
        if not stop.done():
            await _cancelled([stop])
        elif self._chance.random() < 0.5:
            await _cancelled(callers)

    async def _caller(self, poller: Poller, story: Story) -> None:
        """Waits, leaves, comes back, until it is told how the job ended."""
        spec = story.other if self._chance.random() < 0.15 else story.spec
        await self._pause(self._chance.choice((0, 0, 1, 8)))
        while not await self._waited(poller, story.key, spec):
            await self._pause(self._chance.choice((0, 1, 1, 3, 5)))
        self._world.note(self, f"knows how {story.key} ended")

    async def _waited(self, poller: Poller, key: str, spec: JobSpec) -> bool:
        patience = None if self._calm.is_set() else self._chance.choice((0, 2, 9, 60))
        try:
            result = await poller.await_job(key, spec, wait_timeout=patience, raises=False)
        except WaitTimeout:
            self._world.saw("wait timeout")
            return False
        except StoreUnavailable:
            self._world.note(self, f"cannot reach {key}: the store is away")
            return False
        except TarryError as error:
            if not self._stop.is_set():
                self._world.broken("a caller hears of nothing but the job", f"{type(error).__name__}: {error}")
            return True
        self._world.ledger.told(self, key, result)
        return True

    async def _watcher(self, poller: Poller) -> None:
        """Follows the events of one job to the end."""
        key = self._chance.choice(self._world.stories).key
        after = (0, 0)
        while True:
            try:
                async for event in poller.watch(key, after):
                    if event.seq != after[1] + 1:
                        self._world.broken("events in order, without gap or repetition", f"{self} saw {event}")
                    after = (event.run, event.seq)
            except (JobNotFound, StoreUnavailable):
                await self._pause(1)
            else:
                return

    async def _worker(self, poller: Poller) -> None:
        """Polls whatever is due, for a while at a time, until nothing is left."""
        while not self._stop.is_set():
            patience = None if self._calm.is_set() else self._chance.choice((2, 9, 60))
            work = poller.run_once() if self._chance.random() < 0.3 else poller.run(until_idle=True)
            try:
                async with asyncio.timeout(patience):
                    await work
            except TimeoutError:
                self._world.saw("work broken off")
            except StoreUnavailable:
                self._world.note(self, "cannot work: the store is away")
            else:
                self._world.saw("work")
                if self._calm.is_set():
                    return
            await self._pause(self._chance.choice((0, 1, 5)))

    async def _cancel(self, poller: Poller) -> None:
        """A person cancels a job."""
        await self._pause(self._chance.randint(2, 20))
        key = self._chance.choice(self._world.stories).key
        try:
            await poller.cancel(key)
        except StoreError as error:
            self._world.note(self, f"cancel of {key}: {type(error).__name__}")

    async def _user(self, poller: Poller) -> None:
        """A person who cannot leave jobs alone, while there is a storm."""
        for _ in range(self._chance.randint(1, 6)):
            await self._pause(self._chance.choice((0, 1, 2, 5)))
            if self._calm.is_set():
                return
            story = self._chance.choice(self._world.stories)
            command = self._chance.choice(
                ("nudge", "nudge", "update", "update", "pause", "pause", "resume", "resume", "reset")
            )
            if command == "pause" and self._chance.random() < 0.6:
                await self._polled(story.key, at_most=9)
            options = {"strategy": story.other.strategy, "limits": story.other.limits} if command == "update" else {}
            try:
                await getattr(poller, command)(story.key, **options)
                self._world.saw(f"command {command}")
            except StoreError as error:
                self._world.note(self, f"{command} of {story.key}: {type(error).__name__}")

    async def _polled(self, key: str, at_most: float) -> None:
        """Until a poll of the job is under way, if that is soon."""
        try:
            async with asyncio.timeout(at_most):
                await self._world.ledger.sent[key].leaves.wait()
        except TimeoutError:
            return

    async def _resume(self, poller: Poller) -> None:
        """In the calm nothing stays paused or unheard, also where a command took its time to arrive, or comes once more."""
        await self._calm.wait()
        if self._chance.random() < 0.3:
            key = self._chance.choice(self._world.stories).key
            await self._polled(key, at_most=2)
            with suppress(JobNotFound):
                await poller.pause(key)
        while True:
            rows = [self._world.ledger.row_of(story.key) for story in self._world.stories]
            for row in rows:
                if row is not None and row.paused:
                    await self._rested(row.key)
                    await poller.resume(row.key)
                if row is not None and row.outcome is None:
                    await self._glance(poller, row.key)
            if all(row is not None and row.outcome for row in rows):
                return
            await self._pause(1)

    async def _rested(self, key: str) -> None:
        """Leave a paused job alone until nobody has anything to do with it."""
        pause = self._world.ledger.sent[key].paused
        await self._pause(LET_GO / SECOND)
        row = self._world.ledger.row_of(key)
        if row is not None and pause is not None and self._world.ledger.sent[key].paused == pause:
            self._world.ledger.rests(row)

    async def _glance(self, poller: Poller, key: str) -> None:
        """Await a job for a second: somebody may have begun it anew when everybody had heard of its end."""
        try:
            await poller.await_job(key, wait_timeout=1, raises=False)
        except WaitTimeout:
            self._world.saw("wait timeout")

    async def _pause(self, seconds: float) -> None:
        """Away for a while, or until the world is calm."""
        try:
            async with asyncio.timeout(seconds + self._chance.randint(0, 9) * MILLISECOND / SECOND):
                await (asyncio.Future() if self._calm.is_set() else self._calm.wait())
        except TimeoutError:
            return

    def _token(self) -> str:
        return f"{self._chance.getrandbits(128):032x}"


async def _cancelled(waiting: list[asyncio.Task[Any]]) -> None:
    for one in waiting:
        one.cancel()
    await asyncio.gather(*waiting, return_exceptions=True)
