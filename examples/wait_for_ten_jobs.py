"""Waits for ten jobs at once. One fails; the others' results are there, in the order that was asked for.

The first job takes the longest and the last one is over first: they are polled side by side.
"""

from __future__ import annotations

import asyncio
from tempfile import TemporaryDirectory

from tarry import Fixed, JobResult, JobSpec, Limits, Match, Poller, Request
from tarry.testing import StubService


def export(service: str, part: int) -> JobSpec:
    """One of ten parts. Part 7 is broken: the stub is told to say FAILED."""
    behaviour = {"seconds": 1 - part / 20, "script": [{"states": ["FAILED"]}] if part == 7 else []}
    return JobSpec(
        submit=Request("POST", f"{service}/jobs", json={"part": part, **behaviour}),
        poll=Request("GET", f"{service}/jobs/{{submit.body.jobId}}"),
        until=Match("body.state", succeeded="SUCCEEDED", failed="FAILED", pending=["QUEUED", "RUNNING"]),
        strategy=Fixed("100ms"),
        limits=Limits(min_interval="100ms"),
        result="body.result.rows",
    )


async def main() -> None:
    """What became of each is a value: a result, or the error that a wait for it alone would have raised."""
    with TemporaryDirectory() as folder:
        async with StubService() as stub, Poller(f"sqlite:///{folder}/tarry.db") as poller:
            ended = await poller.await_all({f"part-{part}": export(stub.url, part) for part in range(1, 11)})
            for key, end in ended.items():
                print(key, f"{end.output} rows" if isinstance(end, JobResult) else f"{type(end).__name__}: {end}")


if __name__ == "__main__":
    asyncio.run(main())
