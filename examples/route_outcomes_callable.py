"""As route_outcomes.py, for callables in place of HTTP: what they return is the `body` that paths see."""

from __future__ import annotations

import asyncio
from typing import Any

from tarry import Fixed, JobError, JobResult, JobSpec, Limits, Match, Poller

BATCHES: dict[str, list[dict[str, Any]]] = {
    "good": [{"state": "running"}, {"state": "finished", "rows": 3}],
    "bad": [{"state": "running"}, {"state": "crashed", "why": "disk full"}],
}


def start(name: str) -> dict[str, Any]:
    """Start the batch. A plain function runs in a thread."""
    return {"started": name}


async def check(name: str) -> dict[str, Any]:
    """Look at it."""
    return BATCHES[name].pop(0)


BATCH = JobSpec(
    submit=start,
    poll=check,
    args={"name": "{key}"},  # the key is the name on both sides
    until=Match("body.state", succeeded="finished", failed="crashed", pending="running"),
    strategy=Fixed("50ms"),
    limits=Limits(min_interval="50ms"),
    result="body.rows",
    reason="body.why",
)


def load(result: JobResult[Any]) -> None:
    """Go on: the batch did well."""
    print(f"load {result.output} rows of {result.key}")


def report(error: JobError) -> None:
    """Go elsewhere: it did not."""
    print(f"report {type(error).__name__}: {error}\n  last answer: {error.last.body if error.last else None}")


async def main() -> None:
    """Both ways."""
    async with Poller("sqlite://") as poller:
        for key in BATCHES:
            try:
                load(await poller.await_job(key, BATCH))
            except JobError as error:
                report(error)


if __name__ == "__main__":
    asyncio.run(main())
