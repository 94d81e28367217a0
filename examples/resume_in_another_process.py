"""One process loses patience, another goes on: same deadline, same counts, one submit.

Run without arguments it starts a job service and then itself twice. All that the two runs share is the
key and the database.
"""

from __future__ import annotations

import asyncio
import subprocess
import sys
from tempfile import TemporaryDirectory

from tarry import Fixed, JobSpec, Limits, Match, Poller, Request, WaitTimeout
from tarry.testing import StubService


def export(service: str) -> JobSpec:
    """A job that takes four polls."""
    return JobSpec(
        submit=Request("POST", f"{service}/jobs", json={"dataset": "orders"}),
        poll=Request("GET", f"{service}/jobs/{{submit.body.jobId}}"),
        until=Match("body.state", succeeded="SUCCEEDED", pending=["QUEUED", "RUNNING"]),
        strategy=Fixed("200ms"),
        limits=Limits(min_interval="200ms", total_duration="2h"),
    )


async def wait(service: str, database: str, patience: str) -> None:
    """What both processes run."""
    async with Poller(database) as poller:
        try:
            await poller.await_job("orders-2026-q2", export(service), wait_timeout=patience)
        except WaitTimeout:
            print("  my patience is over, the job lives on")
        job = await poller.get("orders-2026-q2")
        limit = (job.deadline - job.created_at) if job.deadline else None
        print(f"  {job.outcome or job.phase} after {job.polls} polls; deadline {job.deadline}, {limit} after creation")


def main() -> None:
    """The service, and the same program twice."""
    with TemporaryDirectory() as folder, StubService().run_in_thread() as stub:
        for number, patience in enumerate(("0s", "1m"), start=1):
            print(f"process {number}, which waits {patience}:", flush=True)
            command = [sys.executable, __file__, stub.url, f"sqlite:///{folder}/tarry.db", patience]
            subprocess.run(command, check=True)  # noqa: S603  # this very script
        print(f"the service saw {sum(stub.polls.values())} polls of {len(stub.jobs)} job")


if __name__ == "__main__":
    asyncio.run(wait(*sys.argv[1:])) if sys.argv[1:] else main()
