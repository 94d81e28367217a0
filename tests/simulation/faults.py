"""What can go wrong, how often, and the ports through which it does."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, fields
from random import Random
from typing import TYPE_CHECKING, Any, TypeVar, cast

from sqlalchemy import Connection

from tarry.errors import StoreUnavailable
from tarry.store.sqlite import SqliteMemory
from tarry.words import MILLISECOND, SECOND, Instant, Micros

if TYPE_CHECKING:
    from tests.simulation.processes import Process
    from tests.simulation.world import World

T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class Rates:
    """How often each fault comes, as a chance for each call; all zero when the world is calm."""

    store_before: float = 0.0
    store_after: float = 0.0
    store_stall: float = 0.0
    commit_before: float = 0.0
    commit_after: float = 0.0
    store_kill: float = 0.0
    call_kill: float = 0.0
    call_pause: float = 0.0
    refused: float = 0.0
    busy: float = 0.0
    broken: float = 0.0
    missing: float = 0.0
    silent: float = 0.0
    garbage: float = 0.0
    slow: float = 0.0

    @classmethod
    def drawn(cls, chance: Random) -> Rates:
        """Some faults often, others not at all: another mixture for each seed."""
        most = {"store_kill": 0.004, "call_kill": 0.12, "call_pause": 0.1, "store_stall": 0.02, "missing": 0.05}
        return cls(**{one.name: chance.choice((0, 0.5, 1)) * most.get(one.name, 0.08) for one in fields(cls)})


class Killed(BaseException):  # no error: the end of a process, which nothing may catch
    """The process ended inside a call that cannot wait for the end of the world."""


class FaultyMemory(SqliteMemory):
    """A real SQLite database whose transactions can fail before they begin and after they were committed.

    `hook` is called with "begin" and "committed", and may raise.
    """

    def __init__(self) -> None:
        super().__init__()
        self.hook: Callable[[str], None] = _nothing

    @contextmanager
    def write(self) -> Iterator[Connection]:
        self.hook("begin")
        with super().write() as connection:
            yield connection
        self.hook("committed")


class SideLocks:
    """The locks that tell at once who is alive: a dead process's lock is free."""

    def __init__(self) -> None:
        self._holders: dict[str, Process] = {}
        self.taking: Process | None = None

    def hold(self, uuid: str) -> bool:
        if self.taking is not None:
            self._holders[uuid] = self.taking
        return True

    def drop(self, uuid: str) -> None:
        self._holders.pop(uuid, None)

    def gone(self, uuid: str) -> bool:
        return uuid not in self._holders or self._holders[uuid].dead

    def close(self) -> None:
        """The pollers share one store that none of them closes."""


class SimClock:
    """The world's clock, as one process has it."""

    def __init__(self, world: World, process: Process) -> None:
        self._world = world
        self._process = process

    def now(self) -> Instant:
        return self._world.clock.now()

    async def sleep(self, span: Micros) -> None:
        self._process.leave_if_over()
        await self._world.clock.sleep(span)
        self._process.leave_if_over()


class SimOffload:
    """The store's thread of one process: calls run one after another, late, in vain, or only seemingly so."""

    def __init__(self, world: World, process: Process) -> None:
        self._world = world
        self._process = process
        self._thread = asyncio.Lock()

    def __call__(self, work: Callable[[], T], /) -> Awaitable[T]:
        return self._queued(work)

    async def _queued(self, work: Callable[[], T]) -> T:
        self._process.leave_if_over()
        async with self._thread:
            self._process.leave_if_over()
            call = cast("Any", work)
            name: str = call.func.__name__.lstrip("_")
            with self._process.doing(f"store {name}"):
                return await self._call(name, call.args, work)

    async def _call(self, name: str, args: tuple[Any, ...], work: Callable[[], T]) -> T:
        world, process, rates, chance = self._world, self._process, self._world.rates, self._world.chance
        await _late(world)
        process.leave_if_over()
        if world.store_down:
            world.note(process, f"{name}: the store is away")
            raise StoreUnavailable("away")
        if chance.random() < rates.store_before:
            world.note(process, f"{name}: failed before it began")
            raise StoreUnavailable("failed before it began")
        stalls = chance.random() < rates.store_stall
        if stalls and chance.random() < 0.5:
            await self._stall(name)
        answer = await self._run(name, args, work)
        if stalls:
            await self._stall(name)
        if chance.random() < rates.store_after:
            world.note(process, f"{name}: its answer was lost")
            world.saw("lost answer")
            raise StoreUnavailable("the answer was lost")
        return answer

    async def _run(self, name: str, args: tuple[Any, ...], work: Callable[[], T]) -> T:
        """Run it for real, and look at the database whatever came of it."""
        world, process = self._world, self._process
        answer: Any = None
        world.acting(process)
        try:
            answer = work()
        except Killed:
            pass
        except Exception as error:
            world.note(process, f"{name}: {type(error).__name__} {error}")
            raise
        finally:
            world.acting(None)
            world.ledger.look(process, name, args, answer)
        if process.dead:
            await world.never()
        return cast("T", answer)

    async def _stall(self, name: str) -> None:
        span = self._world.chance.choice((300 * MILLISECOND, 3 * SECOND, 13 * SECOND))
        self._world.note(self._process, f"{name}: stalls for {span // MILLISECOND} ms")
        await self._world.clock.sleep(span)
        self._process.leave_if_over()


async def _late(world: World) -> None:
    """How long a call waits for the disk: mostly not at all."""
    await world.clock.sleep(world.chance.choice((0, 0, 0, 1, 5, 40)) * MILLISECOND)


def _nothing(_: str) -> None:
    """No fault."""
