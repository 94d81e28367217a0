"""A process ends and another goes on: nothing is forgotten, nothing is begun anew."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from tarry import Exponential, Fixed, JobNotFound, KeyConflict, Outcome, Request
from tests.worlds import DONE, RUNNING, MakeScene, limits, spec_of

SUBMIT = Request("POST", "https://api.example.com/jobs", json={"dataset": "orders"})
SUBMITTED = {"submit": SUBMIT, "poll": Request("GET", "https://api.example.com/jobs/{submit.body.jobId}")}


def test_pc_039_the_key_is_all_that_another_process_needs(durable: MakeScene) -> None:
    """After a kill the third poll follows the second: same URL, counters and deadline, no second submit."""
    world = durable(RUNNING, RUNNING, DONE)

    async def main() -> Any:
        await world.process().killed_at(11, "orders", spec_of(strategy=Fixed("10s"), **SUBMITTED))
        second = world.process()
        waiting = await second.awaiting("orders")
        before = await second.poller.get("orders")
        return before, await waiting, await second.poller.get("orders")

    before, ended, after = world.run(main)
    assert (before.polls, ended.polls, world.job.submits) == (2, 3, 1)
    assert before.deadline == after.deadline
    assert len({seen.url for seen in world.job.requests if seen.kind == "poll"}) == 1


def test_pc_039_another_jobs_key_is_refused(scene: MakeScene) -> None:
    """An unknown key, and the key of a job that is not this one, are errors that say so; nothing is polled."""
    world = scene(RUNNING)
    other = Request("POST", "https://api.example.com/jobs", json={"dataset": "customers"})

    async def main() -> None:
        async with world.poller() as poller:
            await poller.add("orders", spec_of(**SUBMITTED))
            with pytest.raises(JobNotFound, match="no job has the key 'other'"):
                await poller.await_job("other")
            with pytest.raises(KeyConflict, match=r"submit\.json"):
                await poller.await_job("orders", spec_of(**{**SUBMITTED, "submit": other}))

    world.run(main)
    assert world.job.requests == []


def test_pc_040_an_overdue_job_is_polled_once_and_at_once(durable: MakeScene) -> None:
    """Nine ticks were missed while the process was down; one poll is made straight away."""
    world = durable(RUNNING, DONE)

    async def main() -> Any:
        await world.process().killed_at(30, "orders", spec_of(strategy=Fixed("60s")))
        await world.at(600)
        return await (await world.process().awaiting("orders"))

    assert world.run(main).outcome is Outcome.SUCCEEDED
    assert world.seconds() == [0, 600]


def test_pc_041_a_kill_keeps_the_attempt_the_due_time_and_the_limits(durable: MakeScene) -> None:
    """Killed right after the fifth poll: the gap of 16 s goes on where it stood, and the deadline with it.

    The last poll is brought forward, so that it has its time before the deadline at 100 s.
    """
    world = durable(RUNNING)
    spec = spec_of(strategy=Exponential("1s", maximum="60s"), limits=limits("100s", max_polls=20))

    async def main() -> Any:
        await world.process().killed_at(16, "orders", spec)
        await world.at(17)
        return await (await world.process().awaiting("orders", raises=False))

    ended = world.run(main)
    assert world.seconds() == [0, 1, 3, 7, 15, 31, 63, 90]
    assert (ended.outcome, ended.polls) == (Outcome.TIMED_OUT, 8)


def test_pc_042_the_same_key_attaches(durable: MakeScene) -> None:
    """The same call after a kill goes on with the same remote job, submitted once."""
    world = durable(RUNNING, RUNNING, RUNNING, DONE)
    spec = spec_of(strategy=Fixed("10s"), **SUBMITTED)

    async def main() -> Any:
        await world.process().killed_at(25, "orders", spec)
        return await (await world.process().awaiting("orders", spec))

    assert (world.run(main).polls, world.job.submits) == (4, 1)


def test_pc_042_a_second_call_joins_the_running_wait(scene: MakeScene) -> None:
    """Two calls in one process: one loop, one submit, the same result."""
    world = scene(RUNNING, RUNNING, DONE)

    async def main() -> Any:
        async with world.poller() as poller:
            spec = spec_of(**SUBMITTED)
            first = asyncio.create_task(poller.await_job("orders", spec))
            await world.at(1)
            return await asyncio.gather(first, poller.await_job("orders", spec))

    first, second = world.run(main)
    assert first == second
    assert (world.job.submits, world.job.polls) == (1, 3)


def test_pc_039_another_job_under_a_key_is_refused_where_that_is_asked(scene: MakeScene) -> None:
    """`reuse="refuse"` takes no key that exists."""
    world = scene(DONE)
    world.ends(spec_of())

    async def main() -> None:
        async with world.poller() as poller:
            with pytest.raises(KeyConflict):
                await poller.await_job("orders", spec_of(), reuse="refuse")

    world.run(main)
