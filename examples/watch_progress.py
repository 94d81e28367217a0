"""Shows events as they come while a job is awaited.

`watch` reads what was committed, from a cursor on: it works from any process that has the database,
and shows nothing twice. A poll that changed nothing adds no event.
"""

from __future__ import annotations

import asyncio
from tempfile import TemporaryDirectory

from tarry import Fixed, JobSpec, Limits, Match, Poller, Request
from tarry.testing import StubService


def export(service: str) -> JobSpec:
    """A spec that also says where the progress is."""
    return JobSpec(
        submit=Request("POST", f"{service}/jobs", json={"dataset": "orders"}),
        poll=Request("GET", f"{service}/jobs/{{submit.body.jobId}}"),
        until=Match("body.state", succeeded="SUCCEEDED", pending=["QUEUED", "RUNNING"]),
        strategy=Fixed("100ms"),
        limits=Limits(min_interval="100ms"),
        progress="body.progress",
    )


async def show(poller: Poller, key: str) -> None:
    """One line an event, until the job is over."""
    async for stored in poller.watch(key):
        facts = ", ".join(f"{name}={value}" for name, value in stored.data.items())
        print(f"{stored.seq:>2}  {stored.kind:<12} {facts}".rstrip())


async def main() -> None:
    """Watch and await side by side."""
    with TemporaryDirectory() as folder:
        async with StubService() as stub, Poller(f"sqlite:///{folder}/tarry.db") as poller:
            await poller.add("orders-2026-q2", export(stub.url))
            async with asyncio.TaskGroup() as group:
                group.create_task(show(poller, "orders-2026-q2"))
                group.create_task(poller.await_job("orders-2026-q2"))


if __name__ == "__main__":
    asyncio.run(main())
