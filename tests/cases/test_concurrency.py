"""Many jobs in one process: none holds up another."""

from __future__ import annotations

import asyncio
import threading
from typing import Any

import httpx

from tarry import Expression, Fixed, Limits, Observation, Outcome, Politeness, Poller, Request
from tarry.clock import SystemClock
from tarry.http.transport import HttpTransport
from tarry.ports import Prepared
from tarry.testing import Answer, StubService
from tarry.words import SECOND, CallKind
from tests.real import awaited, in_real_time
from tests.worlds import DONE, RUNNING, MakeScene, limits, spec_of


def broken_for_seven(document: Any) -> bool:
    """A condition with a bug that one job alone meets."""
    if document["input"] == 7:
        return document["body"] + 1 > 0
    return document["body"]["state"] == "DONE"


def test_pc_059_one_jobs_bug_and_anothers_slowness_hurt_nobody(scene: MakeScene) -> None:
    """Of fifty jobs one has a broken condition and one a service that hangs; the others end at their third poll."""
    world = scene()
    turns: dict[str, int] = {}

    def answer(request: Any) -> Any:
        turns[request.url] = turns.get(request.url, 0) + 1
        body = DONE if turns[request.url] == 3 else RUNNING
        return Answer(200, body, delay=30_000_000 if request.url.endswith("-8") else 0)

    world.play([answer])
    ended_at: dict[int, float] = {}

    async def one(poller: Any, n: int) -> Any:
        bounds = limits(max_polls=3, poll_timeout="40s")
        spec = spec_of(until=broken_for_seven, input=n, strategy=Fixed("1s"), limits=bounds)
        ended = await poller.await_job(f"job-{n}", spec, raises=False)
        ended_at[n] = world.elapsed()
        return ended

    async def main() -> list[Any]:
        async with world.poller() as poller:
            return await asyncio.gather(*(one(poller, n) for n in range(50)))

    ended = world.run(main)
    assert ended[7].outcome is Outcome.EXHAUSTED
    assert {each.outcome for n, each in enumerate(ended) if n != 7} == {Outcome.SUCCEEDED}
    assert max(at for n, at in ended_at.items() if n not in {7, 8}) <= 4
    assert ended_at[8] >= 90


def test_pc_060_a_blocking_condition_blocks_its_own_job_alone() -> None:
    """A plain condition runs off the event loop: while it stands still, the others end."""
    release = threading.Event()

    def stuck(document: Any) -> bool:
        return release.wait(60) and document["body"] == DONE

    def done() -> dict[str, str]:
        return DONE

    async def main() -> list[str]:
        ends: list[str] = []

        async def one(name: str, **changes: Any) -> None:
            bounds = Limits(min_interval="10ms")
            await awaited(spec_of(poll=done, strategy=Fixed("20ms"), limits=bounds, **changes))
            ends.append(name)

        slow = asyncio.create_task(one("slow", until=stuck))
        await asyncio.gather(*(one("quick") for _ in range(5)))
        release.set()
        await slow
        return ends

    assert in_real_time(main) == [*["quick"] * 5, "slow"]


def test_pc_055_a_contended_pool_is_never_the_jobs_failure() -> None:
    """Forty jobs over a client with two connections: some wait for their turn, all succeed, no failure is counted."""
    bounds = Limits(min_interval="10ms", max_polls=100, poll_timeout="10s")

    async def main() -> list[Any]:
        async with (
            StubService() as service,
            httpx.AsyncClient(limits=httpx.Limits(max_connections=2), trust_env=False) as client,
        ):
            spec = spec_of(
                submit=Request("POST", f"{service.url}/jobs", json={"n": "{key}"}),
                poll=Request("GET", f"{service.url}/jobs/{{submit.body.jobId}}"),
                until=Expression("body.state == 'SUCCEEDED'"),
                strategy=Fixed("20ms"),
                limits=bounds,
            )
            async with Poller("sqlite://", client=client) as poller:
                keys = [f"job-{n}" for n in range(40)]
                ended = await asyncio.gather(*(poller.await_job(key, spec) for key in keys))
                return [(each.outcome, (await poller.get(each.key)).failures) for each in ended]

    assert set(in_real_time(main)) == {(Outcome.SUCCEEDED, 0)}


def test_pc_055_cancelled_calls_lose_no_connection() -> None:
    """After hundreds of calls that were cancelled while they waited their turn, a plain one is answered."""

    async def main() -> Observation:
        async with StubService() as service:
            transport = HttpTransport(clock=SystemClock())
            request = Prepared(CallKind.POLL, "GET", f"{service.url}/polls", timeout=5 * SECOND)
            for _ in range(10):
                calls = [asyncio.create_task(transport.send(request)) for _ in range(2 * transport.in_flight)]
                await asyncio.wait(calls, timeout=0.001)  # some are connecting by now, others wait their turn
                for call in calls:
                    call.cancel()
                await asyncio.gather(*calls, return_exceptions=True)
            seen = await transport.send(request)
            await transport.aclose()
            return seen

    assert in_real_time(main).status == 200


def most_in_a_second(world: Any) -> int:
    """The largest number of polls that the service saw within any second."""
    seen = world.seconds()
    return max(sum(at <= other < at + 1 for other in seen) for at in seen)


def test_pc_056_a_hosts_rate_holds_over_all_jobs(durable: MakeScene) -> None:
    """A hundred jobs begun at once, and again all overdue after a restart, never pass twenty polls a second.

    Each is still polled once in ten seconds.
    """
    world = durable(RUNNING)
    spec = spec_of(strategy=Fixed("10s"))

    async def crowd(seconds: float) -> None:
        process = world.process(politeness=Politeness(per_second=20))
        poller = await process.poller.__aenter__()
        waits = [asyncio.create_task(poller.await_job(f"job-{n}", spec)) for n in range(100)]
        await world.after(seconds)
        await process.kill()
        await asyncio.gather(*waits, return_exceptions=True)

    async def main() -> None:
        await crowd(20)
        await world.after(60)
        await crowd(12)

    world.run(main)
    assert most_in_a_second(world) <= 20
    assert world.job.polls >= 300


def test_pc_056_one_429_slows_all_jobs_of_its_host(scene: MakeScene) -> None:
    """Where the service asks for less, it is asked less by every job, not by the one that heard it alone."""
    world = scene()
    world.play([lambda seen: Answer(429, headers={"Retry-After": "20"}) if seen.url.endswith("job-0") else RUNNING])

    async def main() -> None:
        async with world.poller() as poller:
            waits = [poller.await_job(f"job-{n}", spec_of(), wait_timeout="30s") for n in range(5)]
            await asyncio.gather(*waits, return_exceptions=True)

    world.run(main)
    assert [at for at in world.seconds() if 1 < at < 20] == []
