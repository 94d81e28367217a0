"""Nobody awaits these jobs: a worker polls them, and calls what their spec names for the outcome.

Run without arguments it starts a job service, adds two jobs and leaves; then it starts a worker. What is called
has to be importable, so the worker imports this file by its name.
"""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from tarry import Fixed, JobError, JobResult, JobSpec, Limits, Match, Poller, Request
from tarry.testing import StubService


def load(result: JobResult[Any]) -> None:
    """Go on: the export is there."""
    print(f"  {result.key}: load {result.output} rows")


async def report(error: JobError) -> None:
    """Go elsewhere: it is not."""
    print(f"  {error.key}: report {type(error).__name__}, last state {error.job and error.job.status}")


def export(service: str, polls: int) -> JobSpec:
    """A job that takes four polls, and may be given fewer."""
    return JobSpec(
        submit=Request("POST", f"{service}/jobs", json={"polls": polls}),
        poll=Request("GET", f"{service}/jobs/{{submit.body.jobId}}"),
        until=Match("body.state", succeeded="SUCCEEDED", pending=["QUEUED", "RUNNING"]),
        strategy=Fixed("100ms"),
        limits=Limits(min_interval="100ms", max_polls=polls),
        result="body.result.rows",
        then={"success": load, "failure": report},
    )


async def submit(service: str, database: str) -> None:
    """Leave two jobs in the database."""
    async with Poller(database) as poller:
        for key, polls in (("patient", 10), ("hasty", 2)):
            await poller.add(key, export(service, polls))
            print(f"  {key}: added", flush=True)


async def work(_: str, database: str) -> None:
    """Poll what is there, and do what is owed."""
    async with Poller(database) as poller:
        await poller.run(until_idle=True)


def main() -> None:
    """The service, and two processes that share a database."""
    with TemporaryDirectory() as folder, StubService().run_in_thread() as stub:
        for name in ("submit", "work"):
            print(f"{name}:", flush=True)
            code = f"import asyncio, act_on_the_outcome as it; asyncio.run(it.{name}(*{(stub.url, _in(folder))!r}))"
            subprocess.run([sys.executable, "-c", code], check=True, cwd=Path(__file__).parent)  # noqa: S603  # this very file


def _in(folder: str) -> str:
    return f"sqlite:///{folder}/tarry.db"


if __name__ == "__main__":
    main()
