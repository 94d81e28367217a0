"""S15, S17, S24, S25b: commands of a person, merged without losing an answer."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from tarry import Fixed, Limits, Outcome
from tarry.testing import Answer
from tarry.words import SECOND
from tests.worlds import DONE, RUNNING, MakeScene, limits, spec_of


async def waiting(poller: Any, spec: Any, **options: Any) -> asyncio.Task[Any]:
    """A wait under way."""
    return asyncio.create_task(poller.await_job("orders", spec, raises=False, **options))


@pytest.mark.parametrize("where", ["here", "there"])
def test_s24_a_nudge_brings_the_next_poll_forward(scene: MakeScene, where: str) -> None:
    """From this process or another, within a second, and never through the floor."""
    world = scene(RUNNING, RUNNING, DONE)
    spec = spec_of(strategy=Fixed("20s"), limits=limits(min_interval="6s"))

    async def main() -> Any:
        async with world.poller() as poller, world.poller() as other:
            ending = await waiting(poller, spec)
            teller = poller if where == "here" else other
            await world.at(1)
            await teller.nudge("orders")  # within the floor: at 6 s
            await world.at(14)
            await teller.nudge("orders")
            return await ending

    assert world.run(main).outcome is Outcome.SUCCEEDED
    first, second, third = world.seconds()
    assert (first, second) == (0, 6)
    assert 14 <= third <= 15.1


def test_s24_a_command_loses_no_answer_in_flight(scene: MakeScene) -> None:
    """An update while a poll is under way: its answer is judged on the job as it is now."""
    world = scene(Answer(200, DONE, delay=5 * SECOND))

    async def main() -> Any:
        async with world.poller() as poller, world.poller() as other:
            ending = await waiting(poller, spec_of())
            await world.at(2)
            await other.update("orders", strategy=Fixed("1m"))
            return await ending

    ended = world.run(main)
    assert (ended.outcome, world.seconds(), world.elapsed()) == (Outcome.SUCCEEDED, [0], 5)


def test_s15_a_paused_job_ends_only_on_resume(scene: MakeScene) -> None:
    """The deadline goes on; past it, resume leaves one closing poll."""
    world = scene(RUNNING, RUNNING, DONE)

    async def main() -> Any:
        async with world.poller() as poller:
            ending = await waiting(poller, spec_of(strategy=Fixed("10s"), limits=limits("60s")))
            await world.at(5)
            assert (await poller.pause("orders")).paused
            await world.at(100)
            assert not ending.done()
            assert (await poller.get("orders")).outcome is None
            await poller.resume("orders")
            return await ending

    assert world.run(main).outcome is Outcome.TIMED_OUT
    assert [at for at in world.seconds() if at > 5] == pytest.approx([100], abs=1.1)


def test_s17_an_update_to_a_deadline_that_passed_allows_one_closing_poll(scene: MakeScene) -> None:
    """And one to a `max_polls` that is spent allows none."""
    world = scene(RUNNING, DONE)

    async def main() -> Any:
        async with world.poller() as poller:
            ending = await waiting(poller, spec_of(strategy=Fixed("10m")))
            await world.at(90)
            await poller.update("orders", limits=limits("60s"))
            return await ending

    assert world.run(main).outcome is Outcome.SUCCEEDED
    assert world.seconds() == pytest.approx([0, 90], abs=1.1)

    spent = scene(RUNNING)

    async def other() -> Any:
        async with spent.poller() as poller:
            ending = await waiting(poller, spec_of(strategy=Fixed("10s")))
            await spent.at(15)
            await poller.update("orders", limits=Limits(max_polls=2))
            return await ending

    assert spent.run(other).outcome is Outcome.EXHAUSTED
    assert spent.job.polls == 2


def test_s25b_a_changed_spec_is_adopted_by_whoever_polls(scene: MakeScene) -> None:
    """Given to `await_job` in another process, it holds from the next poll."""
    world = scene(RUNNING, RUNNING, DONE)

    async def main() -> Any:
        async with world.poller() as poller, world.poller() as other:
            ending = await waiting(poller, spec_of(strategy=Fixed("10s")))
            await world.at(2)
            also = await waiting(other, spec_of(strategy=Fixed("3s")))
            return await asyncio.gather(ending, also)

    first, second = world.run(main)
    assert first == second
    assert world.seconds() == [0, 10, 13]
