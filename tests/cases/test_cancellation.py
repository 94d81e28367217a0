"""Who stops waiting, and who stops the job."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from tarry import Fixed, JobCancelled, Match, Outcome, Request
from tests.worlds import DONE, RUNNING, MakeScene, Scene, spec_of


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


POST = Request("POST", "https://api.example.com/jobs")
POLL = Request("GET", "https://api.example.com/jobs/{submit.body.jobId}")
CANCEL = Request("POST", "https://api.example.com/jobs/{submit.body.jobId}/cancel")
STATES = Match("body.state", succeeded="DONE", cancelled="CANCELLED", pending=["RUNNING", "CANCELLING"])


def cancelled(world: Scene, second: float = 1) -> Any:
    """The end of a job that a person cancels, there too, after its first poll."""

    async def main() -> Any:
        async with world.poller() as poller:
            spec = spec_of(submit=POST, poll=POLL, cancel=CANCEL, until=STATES, strategy=Fixed("5s"))
            waiting = asyncio.create_task(poller.await_job("orders", spec, raises=False))
            await world.at(second)
            await poller.cancel("orders")
            await poller.cancel("orders")
            return await waiting

    return world.run(main)


def test_pc_052_a_person_who_cancels_tells_the_service_once(scene: MakeScene) -> None:
    """With a request for it in the spec it is sent once, and the job is polled until the service says how it ended."""
    world = scene()
    world.play([RUNNING, {"state": "CANCELLING"}, {"state": "CANCELLED"}], cancel=202)
    assert cancelled(world).outcome is Outcome.CANCELLED
    assert (world.job.cancels, world.job.polls) == (1, 3)


def test_pc_054_a_cancel_that_lost_the_race_is_no_error(scene: MakeScene) -> None:
    """A 409 says that the job ended in between: the next poll tells how."""
    world = scene()
    world.play([RUNNING, DONE], cancel=409)
    assert cancelled(world).outcome is Outcome.SUCCEEDED
    assert (world.job.cancels, world.job.polls) == (1, 2)


def test_pc_054_a_cancel_takes_its_time(scene: MakeScene) -> None:
    """The job is over when the service says so, and not when it takes the request."""
    world = scene()
    world.play([RUNNING, {"state": "CANCELLING"}, {"state": "CANCELLING"}, {"state": "CANCELLED"}], cancel=202)
    ended = cancelled(world)
    assert (ended.outcome, ended.polls) == (Outcome.CANCELLED, 4)
    assert world.elapsed() >= 10
