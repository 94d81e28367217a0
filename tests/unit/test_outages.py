"""When the store is away, a worker is declared dead, or a job is taken: nothing is lost, nothing is doubled."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Any

import pytest

from tarry import Fixed, Outcome, StoreError
from tarry.errors import StoreUnavailable
from tarry.testing import Answer
from tests.pollers import QUEUED, RUNNING, SUCCEEDED, World, polled, spec_of


class Flaky:
    """An offload whose store is away during a span of virtual time, or loses every n-th answer."""

    def __init__(self, world: World, away: tuple[float, float] = (0, 0), lose_every: int = 0) -> None:
        self._world = world
        self._away = away
        self._lose_every = lose_every
        self.refused = 0
        self.calls = 0

    async def __call__(self, work: Callable[[], Any], /) -> Any:
        """Run the call, or not."""
        self.calls += 1
        at = (self._world.clock.now() - self._world.began) / 1_000_000
        if self._away[0] <= at < self._away[1]:
            self.refused += 1
            raise StoreUnavailable("away")
        result = work()
        if self._lose_every and self.calls % self._lose_every == 0:
            raise StoreUnavailable("the answer was lost")
        return result


def test_no_store_no_polls() -> None:
    """While the store is away nothing is polled; then the job goes on alone, and ends right."""
    world = World([QUEUED] * 9 + [SUCCEEDED])
    flaky = Flaky(world, away=(5, 65))

    async def main() -> Any:
        async with world.poller(offload=flaky) as poller:
            return await poller.await_job("orders", spec_of())

    assert world.run(main).outcome is Outcome.SUCCEEDED
    assert flaky.refused > 5
    assert not [at for at in world.seconds() if 6.1 < at < 65]
    assert (world.job.submits, world.job.polls) == (1, 10)


@pytest.mark.parametrize("every", [2, 3, 5])
def test_a_lost_answer_of_the_store_changes_nothing(every: int) -> None:
    """Every call may have worked and yet raise: it is repeated, and nothing happens twice."""
    world = World([QUEUED, RUNNING, RUNNING, SUCCEEDED])

    async def main() -> Any:
        async with world.poller(offload=Flaky(world, lose_every=every)) as poller:
            ended = await poller.await_job("orders", spec_of())
            return ended, await poller.get("orders"), await poller.history("orders")

    ended, job, events = world.run(main)
    assert (ended.polls, job.polls, world.job.polls, world.job.submits) == (4, 4, 4, 1)
    assert [event.seq for event in events] == list(range(1, len(events) + 1))


def test_an_outage_kills_no_worker() -> None:
    """When the store comes back after longer than a lease, nobody is declared dead who was only cut off."""
    world = World([RUNNING])

    async def main() -> list[bool]:
        one, other = (world.poller(offload=Flaky(world, away=(5, until))) for until in (60, 62))
        async with one, other:
            pollers = [one, other]
            waits = [asyncio.create_task(poller.await_job(f"job-{id(poller)}", polled())) for poller in pollers]
            await world.after(2)
            before = [poller._inside.engine._worker.id for poller in pollers]
            await world.after(120)
            after = [poller._inside.engine._worker.id for poller in pollers]
            for wait in waits:
                wait.cancel()
            return [was == now for was, now in zip(before, after, strict=True)]

    assert world.run(main) == [True, True]


def test_an_outage_does_not_keep_a_poller_from_closing() -> None:
    """Calls get their grace and the store its 30 s; then the poller is closed, whatever waits for a commit."""
    world = World([RUNNING])

    async def main() -> float:
        poller = await world.poller(offload=Flaky(world, away=(5, 600))).__aenter__()
        waits = [asyncio.create_task(poller.await_job(f"job-{n}", polled())) for n in range(3)]
        await world.after(20)
        began = world.clock.now()
        with pytest.raises(StoreUnavailable):
            await poller.__aexit__(None, None, None)
        assert [str(ended) for ended in await asyncio.gather(*waits, return_exceptions=True)] == [
            f"the poller was closed; job 'job-{n}' lives on" for n in range(3)
        ]
        return (world.clock.now() - began) / 1_000_000

    assert 30 <= world.run(main) < 45


def test_a_caller_hears_of_an_outage() -> None:
    """The front door gives up after half a minute, with an error that says so."""
    world = World([QUEUED])

    async def main() -> None:
        async with world.poller(offload=Flaky(world, away=(1, 600))) as poller:
            await world.after(2)
            with pytest.raises(StoreUnavailable):
                await poller.get("orders")
            assert world.clock.now() - world.began < 60_000_000
            await world.after(600)

    world.run(main)


def test_a_worker_declared_dead_starts_anew() -> None:
    """A frozen process comes back, finds its jobs freed, and goes on as a new worker; the stale write is refused."""
    world = World([QUEUED, Answer(delay=100_000_000, body=RUNNING), RUNNING, SUCCEEDED])
    slow = spec_of(strategy=Fixed("3s"))

    async def main() -> Any:
        async with world.poller(lease="30s") as frozen, world.poller() as other:
            waiting = asyncio.create_task(frozen.await_job("orders", slow))
            await world.after(1)
            worker = frozen._inside.engine._worker
            world.store.bury(99, world.clock.now() + 3_600_000_000)
            ended = await asyncio.gather(other.await_job("orders", slow), waiting)
            return ended, worker.id

    (first, second), worker = world.run(main)
    assert first == second
    assert worker is not None
    assert first.outcome is Outcome.SUCCEEDED
    assert world.job.polls <= first.polls


def test_a_job_taken_in_mid_call_is_left_to_its_taker() -> None:
    """What the old holder saw is not written; both waiters get what the new one wrote."""
    world = World([Answer(delay=10_000_000, body=RUNNING), SUCCEEDED])

    async def main() -> Any:
        async with world.poller() as old, world.poller() as new:
            waiting = asyncio.create_task(old.await_job("orders", polled()))
            await world.after(2)
            world.store.bury(99, world.clock.now() + 3_600_000_000)
            return await asyncio.gather(new.await_job("orders", polled()), waiting)

    first, second = world.run(main)
    assert first == second
    assert (first.outcome, first.polls) == (Outcome.SUCCEEDED, 2)


def test_a_store_that_breaks_is_told_to_every_waiter() -> None:
    """Not a passing fault: whoever waits gets the error."""
    world = World([QUEUED])
    broken: list[bool] = []

    async def offload(work: Callable[[], Any], /) -> Any:
        if broken:
            raise StoreError("the database file was replaced")
        return work()

    async def main() -> None:
        async with world.poller(offload=offload) as poller:
            waiting = [asyncio.create_task(poller.await_job(key, polled())) for key in ("a", "b")]
            await world.after(0.5)
            broken.append(True)
            for result in await asyncio.gather(*waiting, return_exceptions=True):
                assert isinstance(result, StoreError)
                assert "replaced" in str(result)
            broken.clear()

    world.run(main)


def test_a_round_that_breaks_hangs_nobody(monkeypatch: pytest.MonkeyPatch) -> None:
    """An error nobody foresaw in the rounds reaches the waiters, and the rounds go on."""
    world = World([QUEUED] * 3 + [SUCCEEDED])
    moved = world.store.moved
    turns: list[int] = []

    def broken(known: Any) -> Any:
        turns.append(1)
        if len(turns) == 2:
            raise ZeroDivisionError("a store never raises that")
        return moved(known)

    monkeypatch.setattr(world.store, "moved", broken)

    async def main() -> Any:
        async with world.poller() as poller:
            with pytest.raises(ZeroDivisionError):
                await poller.await_job("orders", polled())
            await world.after(3)
            return await poller.await_job("orders", polled())

    assert world.run(main).outcome is Outcome.SUCCEEDED


def test_a_loop_that_breaks_gives_its_job_up(monkeypatch: pytest.MonkeyPatch) -> None:
    """An error nobody foresaw reaches the waiter; the next wait writes the permit off and goes on."""
    world = World([QUEUED, SUCCEEDED])
    send = world.job.send
    turns: list[int] = []

    async def broken(request: Any) -> Any:
        turns.append(1)
        if len(turns) == 2:
            raise RuntimeError("a transport never raises")
        return await send(request)

    monkeypatch.setattr(world.job, "send", broken)

    async def main() -> Any:
        async with world.poller() as poller:
            with pytest.raises(RuntimeError, match="never raises"):
                await poller.await_job("orders", polled())
            return await poller.await_job("orders", polled())

    ended = world.run(main)
    assert (ended.outcome, ended.polls) == (Outcome.SUCCEEDED, 3)
