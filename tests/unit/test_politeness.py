"""Politeness: what a host sees of a process, whatever its jobs want."""

from __future__ import annotations

import asyncio
from collections import Counter
from itertools import pairwise
from typing import Any

import pytest

from tarry import Batch, Fixed, Limits, Outcome, Politeness, Request, SpecError
from tarry.frozen import replace
from tarry.testing.scripted import Answer, ScriptedJob
from tarry.words import SECOND, ErrorKind
from tests.pollers import RUNNING, SUCCEEDED, World, polled, spec_of


def at(host: str, **changes: Any) -> Any:
    """A job at this host."""
    return polled(poll=Request("GET", f"https://{host}.example.com/jobs/{{key}}"), **changes)


def by_host(**answers: Any) -> Any:
    """An answer that depends on the first label of the host."""
    return lambda request: answers[request.url.partition("//")[2].partition(".")[0]]


def test_a_rate_holds_over_all_jobs_and_all_are_polled() -> None:
    """40 jobs every 10 s at a host that takes 5 calls a second: never more, also at a restart, and none is left out."""
    world = World([RUNNING])
    politeness = Politeness(per_second=5)

    async def work(seconds: float) -> None:
        async with world.poller(politeness=politeness) as poller:
            running = asyncio.create_task(poller.run())
            await world.after(seconds)
            running.cancel()

    async def main() -> Any:
        async with world.poller() as poller:
            for number in range(40):
                await poller.add(f"job-{number}", polled(strategy=Fixed("10s")))
        await work(40)
        await world.after(60)
        await work(40)
        async with world.poller() as poller:
            return await poller.jobs()

    jobs = world.run(main)
    starts = world.seconds()
    assert all(later - earlier >= 0.999 for earlier, later in zip(starts, starts[5:], strict=False))
    assert min(job.polls for job in jobs) >= 6
    assert {job.failures for job in jobs} == {0}


def test_a_dead_host_delays_nobody_elsewhere() -> None:
    """Its jobs wait for each other; those of another host are polled on time."""
    world = World([by_host(dead=Answer(body=RUNNING, delay=30_000_000), alive=SUCCEEDED)])

    async def main() -> Any:
        async with world.poller() as poller:
            for number in range(100):
                await poller.add(f"dead-{number}", at("dead"))
            for number in range(100):
                await poller.add(f"alive-{number}", at("alive"))
            running = asyncio.create_task(poller.run())
            await world.after(3)
            running.cancel()
            return await poller.jobs(outcomes=[Outcome.SUCCEEDED])

    assert len(world.run(main)) == 100
    seen = Counter(request.url.partition("//")[2].partition(".")[0] for request in world.job.requests)
    assert seen == {"dead": 16, "alive": 100}


_LATE = [Answer(status=503, delay=4 * SECOND)] * 3
_CALLS: dict[str, tuple[dict[str, Any], dict[str, Any]]] = {
    "poll": ({"answers": [*_LATE, SUCCEEDED]}, {}),
    "submit": ({"submit": [*_LATE, {"jobId": "j1"}]}, {}),
    "probe": (
        {"submit": ErrorKind.TIMEOUT, "probe": [*_LATE, {"jobId": "j1"}]},
        {
            "submit": Request("POST", "https://api.example.com/jobs", json={"dataset": "orders"}),
            "probe": Request("GET", "https://api.example.com/jobs/by-name/{key}"),
        },
    ),
}


@pytest.mark.parametrize("lie", [-3600 * SECOND, 3600 * SECOND, 0.5, float("nan"), float("inf")])
@pytest.mark.parametrize("kind", _CALLS)
def test_the_floor_counts_from_when_a_call_left_whatever_its_transport_says(kind: str, lie: float) -> None:
    """One of somebody else's may tell the start of a call wrong: long before it left, not yet come, or no whole number."""
    (script, changes), starts = _CALLS[kind], list[int]()
    world = World([SUCCEEDED])
    world.job = ScriptedJob(**{"answers": [SUCCEEDED], "submit": {"jobId": "j1"}, **script}, clock=world.clock)
    send = world.job.send

    async def misled(request: Any) -> Any:
        if request.kind == kind:
            starts.append(world.clock.now())
        seen = await send(request)
        return replace(seen, started_at=seen.started_at + lie)

    async def main() -> Any:
        world.job.send = misled  # type: ignore[method-assign]  # a spy
        spec = spec_of(strategy=Fixed("1s"), limits=Limits(min_interval="10s"), **changes)
        async with world.poller() as poller:
            return await poller.await_job("orders", spec)

    assert world.run(main).outcome is Outcome.SUCCEEDED
    assert [later - earlier >= 10 * SECOND for earlier, later in pairwise(starts)] == [True] * 3


@pytest.mark.parametrize("status", [429, 503])
def test_a_host_that_asks_for_less_is_spared_by_all_jobs(status: int) -> None:
    """One job hears it, and the others of the host heed it; a hint on a good answer is for its own job alone."""
    asked = Answer(status=status, headers={"Retry-After": "30"})
    world = World([asked, Answer(body=RUNNING, headers={"Retry-After": "300"}), RUNNING])

    async def main() -> None:
        async with world.poller(politeness=Politeness(concurrent=1)) as poller:
            for number in range(3):
                await poller.add(f"job-{number}", polled(strategy=Fixed("10s")))
            running = asyncio.create_task(poller.run())
            await world.after(32)
            running.cancel()

    world.run(main)
    assert world.seconds() == [0, 30, 30, 30]


def test_the_deadline_goes_before_politeness() -> None:
    """A job that would still be in line when its time is over makes its closing poll, and ends in time."""
    world = World([RUNNING])
    spec = polled(limits=Limits(total_duration="20s", poll_timeout="2s"), strategy=Fixed("15s"))

    async def main() -> Any:
        async with world.poller(politeness=Politeness(per_second=0.05)) as poller:
            waits = [poller.await_job(f"job-{number}", spec, raises=False) for number in range(3)]
            return await asyncio.gather(*waits)

    ended = world.run(main)
    assert {result.outcome for result in ended} == {Outcome.TIMED_OUT}
    assert all(19 <= result.elapsed.total_seconds() <= 20 for result in ended)
    assert all(result.polls >= 1 for result in ended)


def test_a_job_in_line_is_given_back_uncounted() -> None:
    """Closing the poller while calls wait for their turn spends no permit, and takes no time."""
    world = World([RUNNING])

    async def main() -> Any:
        async with world.poller(politeness=Politeness(per_second=0.01)) as poller:
            for number in range(5):
                await poller.add(f"job-{number}", polled(strategy=Fixed("10s")))
            running = asyncio.create_task(poller.run())
            await world.after(20)
            stopped = world.clock.now()
        await running
        async with world.poller() as poller:
            return world.clock.now() - stopped, await poller.jobs()

    took, jobs = world.run(main)
    assert took < 1_000_000
    assert sorted(job.polls for job in jobs) == [0, 0, 0, 0, 1]
    assert {(job.owner, job.reserved) for job in jobs} == {(None, 0)}


def test_a_job_that_is_cancelled_in_line_is_not_called() -> None:
    """Whoever waits hears of it at once, and its turn goes to the next."""
    world = World([SUCCEEDED])

    async def main() -> Any:
        async with world.poller(politeness=Politeness(per_second=0.1)) as poller:
            waits = [
                asyncio.create_task(poller.await_job(f"job-{number}", polled(), raises=False)) for number in range(3)
            ]
            await world.after(1)
            await poller.cancel("job-1")
            return await asyncio.gather(*waits)

    ended = world.run(main)
    assert [str(result.outcome) for result in ended] == ["succeeded", "cancelled", "succeeded"]
    assert world.seconds() == [0, 10]


def test_a_lone_job_is_polled_as_without() -> None:
    """Bounds that it does not reach change nothing."""
    world = World([RUNNING, RUNNING, SUCCEEDED])

    async def main() -> None:
        async with world.poller(politeness=Politeness(concurrent=1, per_second=1)) as poller:
            await poller.await_job("orders", polled(strategy=Fixed("1s")))

    world.run(main)
    assert world.seconds() == [0, 1, 2]


def test_the_jobs_of_a_batch_have_one_turn_together() -> None:
    """The bounds are of calls: many jobs in one call are one, and a second call waits for it."""
    answer = Answer(
        body={"jobs": [{"id": f"job-{number}", "state": "SUCCEEDED"} for number in range(40)]}, delay=SECOND
    )
    world = World([answer])
    asked = Batch(
        Request("GET", "https://api.example.com/jobs", params={"ids": "{batch.ids}"}),
        id="{key}",
        items="body.jobs",
        item_id="id",
        chunk=20,
    )

    async def main() -> Any:
        async with world.poller(politeness=Politeness(concurrent=1)) as poller:
            for number in range(40):
                await poller.add(f"job-{number}", polled(poll=asked))
            await poller.run(until_idle=True)
            return await poller.jobs()

    assert {(job.outcome, job.polls) for job in world.run(main)} == {(Outcome.SUCCEEDED, 1)}
    first, second = world.seconds()
    assert second - first >= 1


def test_what_is_no_politeness_is_refused() -> None:
    """The argument is named."""
    with pytest.raises(SpecError, match=r"Poller\.politeness: expected a Politeness, got int"):
        World([RUNNING]).poller(politeness=8)
