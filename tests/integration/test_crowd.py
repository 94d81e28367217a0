"""Many jobs due at once, over real connections."""

from __future__ import annotations

import asyncio
from collections import Counter
from typing import Any

import httpx

from tarry import JobSpec, Limits, Outcome, Poller, Request, Status
from tarry.testing import StubService
from tarry.testing.stub.behaviour import Behaviour

JOBS = 200
POOL = 20


class Watched(httpx.AsyncHTTPTransport):
    """A pool of the caller's that knows how many requests were in it at once."""

    def __init__(self) -> None:
        super().__init__(limits=httpx.Limits(max_connections=POOL))
        self.now = self.most = 0

    async def handle_async_request(self, request: httpx.Request) -> httpx.Response:
        self.now += 1
        self.most = max(self.most, self.now)
        try:
            return await super().handle_async_request(request)
        finally:
            self.now -= 1


def test_hundreds_of_jobs_due_at_once_find_a_connection_each() -> None:
    """With a small pool of the caller's and all due at once, no call has to wait for a connection, or fails for it."""

    async def main() -> tuple[list[Any], int, int]:
        pool = Watched()
        async with (
            StubService() as service,
            httpx.AsyncClient(transport=pool, trust_env=False) as client,
            Poller("sqlite://", client=client) as poller,
        ):
            for number in range(JOBS):
                poll = Request("GET", f"{service.url}/jobs", params={"n": number})
                await poller.add(f"job-{number}", JobSpec(poll=poll, until=Status()))
            await poller.run(until_idle=True)
            return await poller.jobs(limit=JOBS), len(service.requests), pool.most

    jobs, requests, most = asyncio.run(main())
    assert Counter((job.outcome, job.polls, job.failures) for job in jobs) == {(Outcome.SUCCEEDED, 1, 0): JOBS}
    assert requests == JOBS
    assert 1 < most <= POOL


def test_a_host_that_hangs_leaves_connections_to_others() -> None:
    """Jobs of a service that never answers do not keep those of a good one waiting until they are cut."""

    async def main() -> list[Any]:
        async with (
            StubService(script=[Behaviour(mode="hang")]) as dead,
            StubService() as alive,
            Poller("sqlite://") as poller,
        ):
            for number in range(40):
                hanging = Request("GET", f"{dead.url}/jobs/any", params={"n": number, "mode": "hang"})
                await poller.add(
                    f"dead-{number}", JobSpec(poll=hanging, until=Status(), limits=Limits(poll_timeout="5m"))
                )
                good = Request("GET", f"{alive.url}/jobs", params={"n": number})
                await poller.add(f"alive-{number}", JobSpec(poll=good, until=Status()))
            running = asyncio.create_task(poller.run())
            async with asyncio.timeout(60):
                ended = await asyncio.gather(*(poller.await_job(f"alive-{number}") for number in range(40)))
            running.cancel()
            return [result.outcome for result in ended]

    assert asyncio.run(main()) == [Outcome.SUCCEEDED] * 40
