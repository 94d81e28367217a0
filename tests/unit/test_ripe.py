"""A job that rested until its time without being disturbed is claimed unread; whatever became of it meanwhile counts."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from typing import Any

import pytest
from sqlalchemy import text

from tarry import CheckpointError, Fixed, JobCancelled, JobResult, JobSpec, Poller
from tarry.core.function import Function
from tarry.ports import JobRow
from tarry.words import SECOND
from tests.pollers import RUNNING, SUCCEEDED, World, polled

SLOW = polled(strategy=Fixed("40s"))
"""A job that nobody holds between two polls: it is claimed 2 s before it is due."""

Meanwhile = Callable[[World, Poller], Awaitable[object]]


class Noting:
    """An offload that notes the names of the calls, and when they are made."""

    def __init__(self, world: World) -> None:
        self.calls: list[tuple[str, float]] = []
        self._world = world

    async def __call__(self, work: Any, /) -> Any:
        name = next(part.__name__ for part in (work.func, *work.args) if hasattr(part, "__name__"))
        self.calls.append((name, (self._world.clock.now() - self._world.began) / SECOND))
        return work()


def stored(world: World) -> JobRow:
    """The row as it is."""
    row = world.store.find("default", "orders")
    assert row is not None
    return row


def told(world: World, meanwhile: Meanwhile, spec: JobSpec = SLOW, **options: Any) -> Any:
    """How the wait ends where something happens just before the claim at 38.25 s, after the last look at the store."""

    async def main() -> Any:
        async with world.poller(**options) as poller, world.poller() as other:
            await poller._inside.engine.ready()
            await world.after(0.25)
            waiting = asyncio.create_task(poller.await_job("orders", spec, wait_timeout=150))
            await world.after(37.9)
            await meanwhile(world, other)
            return (await asyncio.gather(waiting, return_exceptions=True))[0]

    return world.run(main)


async def nothing(_world: World, _other: Poller) -> None:
    """Nothing happens."""


def test_it_is_claimed_with_one_call() -> None:
    """The row is not read again: the claim says how it is."""
    world = World([RUNNING, SUCCEEDED])
    calls = Noting(world)
    result = told(world, nothing, offload=calls)
    assert isinstance(result, JobResult)
    assert [name for name, at in calls.calls if 38.2 < at < 40.2 and name in {"rows", "claim", "reserve"}] == ["claim"]
    assert world.seconds() == [0.25, 40.25]


def test_one_that_was_cancelled_is_not_polled() -> None:
    """Its waiter hears how it ended."""
    world = World([RUNNING, SUCCEEDED])
    ended = told(world, lambda _, other: other.cancel("orders"))
    assert isinstance(ended, JobCancelled)
    assert world.seconds() == [0.25]


def test_one_that_was_paused_stays_so() -> None:
    """Nobody claims it, until it goes on."""
    world = World([RUNNING, SUCCEEDED])

    async def paused(_world: World, other: Poller) -> None:
        await other.pause("orders")
        await world.after(20)
        assert (stored(world).owner, stored(world).polls) == (None, 1)
        await other.resume("orders")

    assert isinstance(told(world, paused), JobResult)
    assert world.seconds()[1] > 58


def test_one_that_was_updated_goes_by_what_it_is_now() -> None:
    """The claim that was made on what was known before is given back; the poll is in time all the same."""
    world = World([RUNNING, RUNNING, SUCCEEDED])
    assert isinstance(told(world, lambda _, other: other.update("orders", strategy=Fixed("70s"))), JobResult)
    assert world.seconds() == [0.25, 40.25, 110.25]


def test_one_that_another_polled_is_given_back_unpolled() -> None:
    """It moved on by a step, with the same command: the next poll is another time's."""
    world = World([RUNNING, RUNNING, SUCCEEDED])

    async def polled_by_another(_world: World, other: Poller) -> None:
        with world.store._database.write() as connection:
            connection.execute(text("UPDATE tarry_job SET due = :now, wake = :now"), {"now": world.clock.now()})
            found = connection.execute(text("SELECT state, due FROM tarry_job")).one()
            was = f'"due":{round(world.began + 40.25 * SECOND)}'
            assert was in found.state
            changed = found.state.replace(was, f'"due":{found.due}')
            connection.execute(text("UPDATE tarry_job SET state = :state"), {"state": changed})
        await other.tick("orders")
        await world.after(5)
        assert (stored(world).owner, stored(world).polls, stored(world).reserved) == (None, 2, 0)

    assert isinstance(told(world, polled_by_another), JobResult)
    assert [round(second) for second in world.seconds()] == [0, 38, 78]


def test_one_that_was_damaged_is_told_and_left() -> None:
    """It is not polled, nor held, nor mended."""
    world = World([RUNNING, SUCCEEDED])

    async def damage(_world: World, _other: Poller) -> None:
        with world.store._database.write() as connection:
            connection.execute(text("UPDATE tarry_job SET state = '{'"))

    assert isinstance(told(world, damage), CheckpointError)
    row = stored(world)
    assert (row.state, row.owner, row.polls, row.reserved) == ("{", None, 1, 0)
    assert world.seconds() == [0.25]


def test_one_with_a_callable_that_is_not_known_here_is_not_claimed() -> None:
    """Also not for a moment: its row stays as it is."""
    world = World([RUNNING, SUCCEEDED])
    steps: list[int] = []

    async def unknown(_world: World, _other: Poller) -> None:
        strange = Function(function="no_such_module:report")
        spec = polled(strategy=Fixed("40s"), until=strange)
        async with world.poller() as poller:
            await poller.add("strange", spec)
            with world.store._database.write() as connection:
                late = {"at": world.clock.now() + 5 * SECOND}
                connection.execute(text("UPDATE tarry_job SET due = :at, wake = :at WHERE key = 'strange'"), late)
            with pytest.raises(TimeoutError):
                await poller.await_job("strange", wait_timeout=10)
            row = world.store.find("default", "strange")
            assert row is not None
            steps.append(row.step)

    told(world, unknown)
    assert steps == [0]
