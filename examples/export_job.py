"""Awaits an export job over HTTP, against a job service on loopback.

Start here: the spec is the one of the README. Take away the stub, put the URL of your service in its
place, and keep the database where it is: then a second run goes on where a first one was killed.
"""

from __future__ import annotations

import asyncio
from tempfile import TemporaryDirectory

from tarry import Exponential, JobSpec, Limits, Match, Poller, Request
from tarry.testing import StubService


def export(service: str) -> JobSpec:
    """How an export is submitted, polled, judged and limited."""
    return JobSpec(
        submit=Request("POST", f"{service}/jobs", json={"dataset": "orders"}, idempotent=True),
        poll=Request("GET", f"{service}/jobs/{{submit.body.jobId}}"),
        until=Match("body.state", succeeded="SUCCEEDED", failed="FAILED", pending=["QUEUED", "RUNNING"]),
        strategy=Exponential("100ms", maximum="1m"),
        limits=Limits(min_interval="100ms", max_polls=500, total_duration="2h"),
        result="body.result",
    )


async def main() -> None:
    """Await it twice: the second time the outcome is read, and nothing is sent."""
    with TemporaryDirectory() as folder:
        async with StubService() as stub, Poller(f"sqlite:///{folder}/tarry.db") as poller:
            result = await poller.await_job("orders-2026-q2", export(stub.url))
            print(f"{result.outcome} after {result.polls} polls: {result.output['rows']} rows")

            again = await poller.await_job("orders-2026-q2")
            print(f"{again.outcome} as before; the service saw {sum(stub.polls.values())} polls")


if __name__ == "__main__":
    asyncio.run(main())
