"""Who stops waiting, and who stops the job."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from tarry import Fixed, JobCancelled, Outcome
from tests.worlds import DONE, RUNNING, MakeScene, spec_of


def test_pc_052_a_wait_that_is_cut_leaves_the_job(scene: MakeScene) -> None:
    """By `asyncio.timeout` or by the end of the loop: nothing is told to the service, and the job can be resumed."""
    world = scene(RUNNING, RUNNING, DONE)

    async def main() -> Any:
        async with world.poller() as poller:
            with pytest.raises(TimeoutError):
                async with asyncio.timeout(3):
                    await poller.await_job("orders", spec_of())
            waiting = asyncio.create_task(poller.await_job("orders"))
            await world.after(0)
            waiting.cancel()
            await asyncio.gather(waiting, return_exceptions=True)
            left = await poller.get("orders")
            return left, await poller.await_job("orders")

    left, ended = world.run(main)
    assert left.outcome is None
    assert (ended.outcome, {seen.kind for seen in world.job.requests}) == (Outcome.SUCCEEDED, {"poll"})


def test_pc_052_a_person_who_cancels_ends_the_job(scene: MakeScene) -> None:
    """Without a request for it in the spec the job is over at once, for everybody who waits."""
    world = scene(RUNNING)

    async def main() -> None:
        async with world.poller() as poller:
            waiting = asyncio.create_task(poller.await_job("orders", spec_of()))
            await world.after(3)
            await poller.cancel("orders")
            with pytest.raises(JobCancelled):
                await waiting

    world.run(main)
    assert (world.elapsed(), world.seconds()) == (3, [0, 2])


def test_pc_053_closing_does_not_wait_for_a_sleep(scene: MakeScene) -> None:
    """One second into a gap of 5 minutes the poller closes at once; the next one polls at the stored time."""
    world = scene(RUNNING, DONE)

    async def main() -> float:
        async with world.poller() as poller:
            waiting = asyncio.create_task(poller.await_job("orders", spec_of(strategy=Fixed("300s"))))
            await world.at(1)
        closed = world.elapsed()
        await asyncio.gather(waiting, return_exceptions=True)
        return closed

    assert world.run(main) < 2
    world.ends(None)
    assert world.seconds() == [0, 300]


def test_pc_054_a_cancel_that_comes_too_late_changes_nothing(scene: MakeScene) -> None:
    """A job that ended in between stays as it ended."""
    world = scene(DONE)

    async def main() -> Any:
        async with world.poller() as poller:
            await poller.await_job("orders", spec_of())
            return await poller.cancel("orders")

    assert world.run(main).outcome is Outcome.SUCCEEDED
