"""A poll is permitted by the limits that hold now, and leaves only under a lease that holds now."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Any

import pytest

from tarry import Fixed, Limits, Outcome, WaitTimeout
from tarry.words import SECOND
from tests.pollers import QUEUED, SUCCEEDED, World, polled, spec_of


class Slow:
    """An offload on which one kind of store call takes long, from `after` seconds on."""

    def __init__(self, world: World, name: str, seconds: int, after: float = 0) -> None:
        self._world = world
        self._name = name
        self._span = seconds * SECOND
        self._thread = asyncio.Lock()
        self._from = world.began + after * SECOND

    async def __call__(self, work: Callable[[], Any], /) -> Any:
        """Run the call after those before it; its answer is late."""
        async with self._thread:
            return await self._run(work)

    async def _run(self, work: Callable[[], Any]) -> Any:
        answer = work()
        if work.func.__name__ == self._name and self._world.clock.now() >= self._from:  # type: ignore[attr-defined]  # the runtime passes partials
            self._name = "only once"
            await self._world.clock.sleep(self._span)
        return answer


@pytest.mark.parametrize("seconds", [15, 60])
def test_a_permit_that_came_late_is_not_used_under_a_stale_lease(seconds: int) -> None:
    """When the commit of a permit outlasts the lease, no poll leaves until the process holds one again."""
    world = World([QUEUED, SUCCEEDED])
    leased: list[bool] = []

    async def main() -> Any:
        offload = Slow(world, "reserve", seconds, after=5)
        async with world.poller(offload=offload, lease="20s") as poller:
            send, worker = world.job.send, poller._inside.engine._worker

            async def watched(request: Any) -> Any:
                leased.append(worker.may_send(world.clock.now()))
                return await send(request)

            world.job.send = watched  # type: ignore[method-assign]  # a spy
            return await poller.await_job("orders", polled(strategy=Fixed("8s")))

    assert world.run(main).outcome is Outcome.SUCCEEDED
    assert leased == [True, True]
    assert world.job.polls == 2


def test_a_submit_whose_intent_came_late_is_not_sent_and_comes_again() -> None:
    """An intent that took longer than the lease sends nothing, so that it is no lost answer either."""
    world = World([SUCCEEDED])
    submit = spec_of().submit.model_copy(update={"idempotent": False})  # type: ignore[union-attr]  # a request

    async def main() -> Any:
        async with world.poller(offload=Slow(world, "checkpoint", 17), lease="20s") as poller:
            return await poller.await_job("orders", spec_of(submit=submit))

    assert world.run(main).outcome is Outcome.SUCCEEDED
    assert world.job.submits == 1
    assert "submit_failed" in world.kinds()


def test_a_poll_is_permitted_by_raised_limits() -> None:
    """Where another caller raised `max_polls`, the polls that it adds are made, by whoever comes."""
    world = World([QUEUED] * 3 + [SUCCEEDED])

    async def main() -> Any:
        async with world.poller() as poller:
            with pytest.raises(WaitTimeout):
                await poller.await_job(
                    "orders", polled(strategy=Fixed("7s"), limits=Limits(max_polls=2)), wait_timeout=1
                )
            await world.after(1)
            few = await poller.get("orders")
            ended = await poller.await_job("orders", polled(strategy=Fixed("7s"), limits=Limits(max_polls=9)))
            return few, ended

    few, ended = world.run(main)
    assert (few.polls, few.max_polls) == (1, 2)
    assert (ended.outcome, ended.polls, world.job.polls) == (Outcome.SUCCEEDED, 4, 4)
    assert world.kinds().count("spec_changed") == 1


def test_a_caller_with_more_polls_saves_a_job_that_has_spent_its_own() -> None:
    """A job at its `max_polls` and not yet over is polled on for a caller whose limit is higher."""
    world = World([QUEUED, SUCCEEDED])
    spent = polled(strategy=Fixed("7s"), limits=Limits(max_polls=1))

    async def main() -> Any:
        async with world.poller() as poller:
            job = await poller.add("orders", spent)
            (row,) = world.store.rows([job.id])
            worker = world.store.register("dead", world.clock.now(), SECOND)
            (held,) = world.store.claim(worker, "n", world.clock.now(), [row.id])
            assert world.store.reserve([held.grip]) == [True]
            await world.after(5)
            return await poller.await_job("orders", polled(strategy=Fixed("7s"), limits=Limits(max_polls=3)))

    ended = world.run(main)
    assert (ended.outcome, ended.polls, world.job.polls) == (Outcome.SUCCEEDED, 3, 2)


def test_a_later_deadline_takes_the_place_of_a_closing_poll() -> None:
    """A job about to make its last poll before the deadline goes on when a caller brings a later one."""
    world = World([QUEUED, QUEUED, QUEUED, SUCCEEDED])

    async def main() -> Any:
        short = polled(strategy=Fixed("12s"), limits=Limits(total_duration="10s", poll_timeout="5s"))
        async with world.poller() as poller:
            with pytest.raises(WaitTimeout):
                await poller.await_job("orders", short, wait_timeout=3)
            return await poller.await_job("orders", polled(strategy=Fixed("12s"), limits=Limits(total_duration="90s")))

    assert world.run(main).outcome is Outcome.SUCCEEDED
    assert world.seconds() == [0, 9, 21, 33]
