"""A job that is made to be waited for is held from the beginning by whoever made it, and never for nobody."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from tarry import JobSpec, Limits, Poller, StoreError
from tarry.errors import StoreUnavailable
from tarry.ports import JobRow
from tarry.words import SECOND
from tests.pollers import RUNNING, SUCCEEDED, World, polled, spec_of


class Noting:
    """An offload that notes the names of the calls; it may be slow to make a job, or away from then on until `back`."""

    def __init__(self, world: World, *, slow: bool = False, goes: bool = False) -> None:
        self.names: list[str] = []
        self.back = asyncio.Event()
        self._world = world
        self._slow = slow
        self._goes = goes

    async def __call__(self, work: Any, /) -> Any:
        """Run the call, and lose its answer where the store goes away."""
        name = work.func.__name__
        self.names.append(name)
        if self._slow and name == "add_all":
            await self._world.clock.sleep(5 * SECOND)
        result = work()
        if self._goes and "add_all" in self.names and not self.back.is_set():
            raise StoreUnavailable("the answer was lost")
        return result


async def begun(poller: Poller) -> None:
    """Until the poller is a worker."""
    await poller._inside.engine.ready()


def stored(world: World, key: str = "orders") -> JobRow:
    """The row as it is."""
    row = world.store.find("default", key)
    assert row is not None
    return row


def assert_free(row: JobRow) -> None:
    """Nobody has it, and no poll was counted."""
    assert (row.owner, row.polls, row.reserved, row.outcome) == (None, 0, 0, None)


@pytest.mark.parametrize(("spec", "permits"), [(polled(), 0), (spec_of(), 1)])
def test_a_new_job_is_not_claimed_by_itself(spec: JobSpec, permits: int) -> None:
    """One commit makes it, takes it and permits its first poll, if that is what comes first; each is counted once."""
    world = World([RUNNING, SUCCEEDED])
    calls = Noting(world)

    async def main() -> Any:
        async with world.poller(offload=calls) as poller:
            await begun(poller)
            return await poller.await_job("orders", spec)

    assert world.run(main).polls == world.job.polls == 2
    assert [calls.names.count(name) for name in ("add_all", "claim", "reserve")] == [1, 0, permits]
    assert [event.seq for event in world.told] == list(range(1, len(world.told) + 1))


def test_a_job_that_is_only_made_is_nobodys() -> None:
    """Whoever works may have it at once; so is one whose first poll comes later."""
    world = World([RUNNING])

    async def main() -> None:
        async with world.poller() as poller:
            await begun(poller)
            await poller.add("orders", polled())
            later = polled(limits=Limits(initial_delay="1h"))
            wait = asyncio.create_task(poller.await_job("later", later))
            await world.after(3)
            assert (stored(world).owner, stored(world, "later").owner) == (None, None)
            wait.cancel()

    world.run(main)


def test_who_leaves_before_it_is_made_leaves_it_to_others() -> None:
    """The call of the store comes to its end, nobody is there any more, and the job is given back unpolled."""
    world = World([RUNNING])

    async def main() -> None:
        async with world.poller(offload=Noting(world, slow=True)) as poller:
            await begun(poller)
            wait = asyncio.create_task(poller.await_job("orders", polled()))
            await world.after(1)
            wait.cancel()
            await world.after(4.5)
            assert stored(world).owner is not None
            await world.after(2)
            assert_free(stored(world))
            assert poller._inside.engine.held == 0

    world.run(main)
    assert world.job.polls == 0


def test_what_was_taken_unheard_is_given_back() -> None:
    """The store made the job and was not heard of for longer than a caller waits: once it is back, the job is free."""
    world = World([RUNNING])
    calls = Noting(world, goes=True)

    async def main() -> None:
        async with world.poller(offload=calls) as poller:
            await begun(poller)
            with pytest.raises(StoreError):
                await poller.await_job("orders", polled())
            assert stored(world).owner is not None
            calls.back.set()
            await world.after(10)
            assert_free(stored(world))

    world.run(main)
    assert world.job.polls == 0


def test_a_doubt_does_not_outlive_the_poller() -> None:
    """What cannot be settled ends with it, and with its lease."""
    world = World([RUNNING])
    calls = Noting(world, goes=True)

    async def main() -> set[str]:
        async with world.poller(offload=calls) as poller:
            await begun(poller)
            with pytest.raises(StoreError):
                await poller.await_job("orders", polled())
            closing = asyncio.create_task(poller.__aexit__(None, None, None))
            await world.after(6)
            doubts = {task.get_name() for task in asyncio.all_tasks()} & {"tarry doubt"}
            calls.back.set()
            await closing
            return doubts

    assert world.run(main) == set()
    assert stored(world).owner is None
