"""After a downtime: what is overdue is spread out, and nothing else."""

from __future__ import annotations

import asyncio
from collections import Counter
from typing import Any

import pytest

from tarry import Fixed, Limits
from tarry.runtime.stagger import MOST, Stagger
from tarry.store import MemoryStore
from tarry.words import SECOND
from tests.contract.bench import START, new_job
from tests.pollers import RUNNING, World, polled


async def restarted(world: World, jobs: int, seconds: float, **changes: Any) -> Any:
    """That many jobs, a downtime of 10 minutes, and a worker for some seconds; the jobs then."""
    async with world.poller() as poller:
        for number in range(jobs):
            await poller.add(f"job-{number}", polled(strategy=Fixed("1m"), **changes))
        await poller.run_once()
    await world.after(600)
    world.job.requests.clear()
    async with world.poller() as poller:
        running = asyncio.create_task(poller.run())
        await world.after(seconds)
        running.cancel()
        return await poller.jobs(limit=1000)


def test_many_overdue_jobs_are_spread_out() -> None:
    """Each is polled once and soon, by its key's own place; the host sees no burst, and the timeline says why."""
    world = World([RUNNING])
    jobs = world.run(lambda: restarted(world, 100, 10))
    assert {job.polls for job in jobs} == {2}
    starts = [at - 600 for at in world.seconds()]
    assert max(starts) <= 5
    assert max(Counter(int(at) for at in starts).values()) <= 35
    assert {job.timeline[0].wait_source for job in jobs} <= {"stagger", "strategy"}
    assert sum(job.timeline[0].wait_source == "stagger" for job in jobs) > 90
    again = World([RUNNING])
    again.run(lambda: restarted(again, 100, 10))
    assert {url: at for at, url in places(world)} == {url: at for at, url in places(again)}


def places(world: World) -> list[tuple[float, str]]:
    """When each URL was polled."""
    return sorted((round((seen.at - world.began) / SECOND, 1), seen.url) for seen in world.job.requests)


def test_a_few_overdue_jobs_are_polled_at_once() -> None:
    """They are no storm: exactly one poll each, straight away."""
    world = World([RUNNING])
    world.run(lambda: restarted(world, 10, 10))
    assert [at - 600 for at in world.seconds()] == [0] * 10


def test_a_job_that_is_awaited_is_polled_at_once() -> None:
    """Whoever waits is not kept waiting, however many others are overdue."""
    world = World([RUNNING])

    async def main() -> None:
        await restarted(world, 50, 0)
        world.job.requests.clear()
        async with world.poller() as poller:
            with pytest.raises(TimeoutError):
                await poller.await_job("job-7", wait_timeout=0)

    world.run(main)
    assert len(world.job.requests) == 1


def test_a_deadline_that_is_near_is_not_put_off() -> None:
    """Such a job is polled at once, while it still can be."""
    world = World([RUNNING])
    world.run(lambda: restarted(world, 100, 1, limits=Limits(total_duration="605s")))
    assert len({seen.url for seen in world.job.requests if seen.at - world.began < 600.5 * SECOND}) == 100


def test_the_spread_is_bounded() -> None:
    """A job's place is within it; without a storm, for a job that is not overdue, or one near its deadline there is none."""
    store = MemoryStore()
    store.open(START)
    rows = [store.add(new_job(f"job-{number}"))[0] for number in range(50)]
    began = START + 60 * SECOND
    full = Stagger(began, MOST)
    assert full.spread == Stagger(began, 10 * MOST).spread == 30 * SECOND
    assert Stagger(began, 20).spread == SECOND
    assert all(began <= (full.start(row) or 0) < began + 30 * SECOND for row in rows)
    assert full.start(rows[0]) == full.start(rows[0])
    assert Stagger(began, 10).start(rows[0]) is None
    assert Stagger(START, MOST).start(rows[0]) is None
    urgent, _ = store.add(new_job("urgent", deadline=began + 50 * SECOND))
    assert full.start(urgent) is None
