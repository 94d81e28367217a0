"""Awaits one export. Kill it, run it again: it goes on where it was, and submits nothing twice."""

import asyncio
import sys

from tarry import Fixed, JobSpec, Limits, Match, Poller, Request

SERVICE, DATABASE = sys.argv[1:] or ("http://127.0.0.1:8089", "sqlite:///tarry.db")

export = JobSpec(
    submit=Request("POST", SERVICE + "/jobs", json={"dataset": "orders"}, idempotent=True),
    poll=Request("GET", SERVICE + "/jobs/{submit.body.jobId}"),
    until=Match("body.state", succeeded="SUCCEEDED", failed="FAILED", pending=["QUEUED", "RUNNING"]),
    strategy=Fixed("1s"),
    limits=Limits(max_polls=20, total_duration="1m"),
    result="body.result",
)


async def main() -> None:
    """Create the job or go on with it, and wait for its result."""
    async with Poller(DATABASE) as poller:
        result = await poller.await_job("orders-2026-q2", export)
        print(result.output, "after", result.polls, "polls")  # noqa: T201  # printing is what an example is for


asyncio.run(main())
