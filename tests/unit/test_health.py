"""How a poller is doing, and that it says so when something is late."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable
from datetime import timedelta
from typing import Any

import pytest

from tarry import Fixed, Limits
from tarry.errors import StoreUnavailable
from tarry.runtime.health import Health
from tarry.testing.scripted import Answer
from tarry.words import SECOND, moment
from tests.pollers import RUNNING, SUCCEEDED, World, polled

NOTHING = timedelta()


def test_a_poller_that_rests_is_well() -> None:
    """Before it is a worker there is nothing to say; after its end there is nothing late."""
    world = World([SUCCEEDED])

    async def main() -> list[Health]:
        async with world.poller() as poller:
            before = await poller.health()
            await poller.add("orders", polled())
            await poller.run(until_idle=True)
            return [before, await poller.health()]

    before, after = world.run(main)
    assert (before.worker, before.lease_age, before.round_age, before.held) == (None, None, None, 0)
    assert (after.worker, after.held, after.in_flight, after.late, after.refused) == (1, 0, 0, NOTHING, 0)
    assert (before.problems, after.problems) == ((), ())


def test_what_is_held_and_under_way_is_counted() -> None:
    """A job between two polls is held; one whose answer is not there yet is a call under way as well."""
    world = World([Answer(200, RUNNING, delay=3 * SECOND)])

    async def main() -> list[tuple[int, int]]:
        async with world.poller() as poller:
            for key in ("one", "two"):
                await poller.add(key, polled(strategy=Fixed("5s")))
            running = asyncio.create_task(poller.run())
            seen = []
            for _ in range(2):
                await world.after(2)
                health = await poller.health()
                seen.append((health.held, health.in_flight))
            running.cancel()
            return seen

    assert world.run(main) == [(2, 2), (2, 0)]


async def watched(world: World, seconds: float, **options: Any) -> Health:
    """A worker's health after so many seconds."""
    async with world.poller(**options) as poller:
        running = asyncio.create_task(poller.run())
        await world.after(seconds)
        health = await poller.health()
        running.cancel()
        return health


def test_a_job_that_waits_for_its_turn_is_late(caplog: pytest.LogCaptureFixture) -> None:
    """More jobs of a host are due than it may be called for: how late the oldest is is told, and logged after a minute."""
    caplog.set_level(logging.INFO, "tarry.worker")
    world = World([Answer(200, RUNNING, delay=25 * SECOND)])

    async def main() -> Health:
        async with world.poller() as poller:
            for number in range(200):
                await poller.add(f"job-{number}", polled(limits=Limits(poll_timeout="30s")))
        return await watched(world, 61)

    health = world.run(main)
    assert health.late > timedelta(seconds=50)
    (problem,) = health.problems
    assert problem.startswith("the oldest job that is due is ")
    told = [message for message in caplog.messages if "is due" in message]
    assert len(told) == 1


def test_a_store_that_is_away_is_told() -> None:
    """Since when, and that the rounds do not end; once it answers again, all is well."""
    world = World([RUNNING])
    began = world.began

    async def offload(work: Callable[[], Any]) -> Any:
        if 10 * SECOND <= world.clock.now() - began < 40 * SECOND:
            raise StoreUnavailable("gone for lunch")
        return work()

    async def main() -> tuple[Health, Health]:
        async with world.poller(offload=offload) as poller:
            running = asyncio.create_task(poller.run())
            await world.after(30)
            away = await poller.health()
            await world.after(30)
            running.cancel()
            return away, await poller.health()

    away, after = world.run(main)
    assert away.store_away_since is not None
    assert timedelta() <= away.store_away_since - moment(began + 10 * SECOND) < timedelta(seconds=1)
    assert [problem.split(" ")[1] for problem in away.problems] == ["store", "last"]
    assert (after.store_away_since, after.problems) == (None, ())


def test_an_event_loop_that_was_busy_is_told() -> None:
    """A callable that blocks it, say: how late the round came."""
    world = World([RUNNING])

    async def main() -> Health:
        async with world.poller() as poller:
            running = asyncio.create_task(poller.run())
            await world.after(10.2)
            world.clock.advance(5 * SECOND)
            await world.after(0.1)
            health = await poller.health()
            running.cancel()
            return health

    health = world.run(main)
    assert health.loop_lag > timedelta(seconds=4)
    assert health.problems[0].startswith("the event loop was busy for 4")


def test_a_write_that_was_refused_is_counted() -> None:
    """Another took the job meanwhile: what was seen is not written, and that is no secret."""
    world = World([Answer(200, RUNNING, delay=5 * SECOND)])

    async def main() -> int:
        async with world.poller() as poller:
            await poller.add("orders", polled())
            running = asyncio.create_task(poller.run())
            await world.after(2)
            with world.store._database.write() as connection:
                connection.exec_driver_sql("UPDATE tarry_job SET fence = fence + 1, nonce = 'another', owner = 99")
            await world.after(5)
            running.cancel()
            return (await poller.health()).refused

    assert world.run(main) == 1
