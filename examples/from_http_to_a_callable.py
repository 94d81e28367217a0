"""The same job polled over HTTP, and then by a function: the spec changes in two lines, the rest stays.

What a function returns is the `body` that conditions and paths see. A script plays the service in both, and time jumps.
"""

from __future__ import annotations

from typing import Any

from tarry import Exponential, JobSpec, Match, Poller, Request
from tarry.testing import FakeClock, ScriptedJob

ANSWERS: list[Any] = [{"state": "queued"}, {"state": "running"}, {"state": "done", "rows": 3}]
SDK = iter(ANSWERS)


async def check(batch: str) -> dict[str, Any]:
    """Ask a vendor's SDK, a database, a file: here, the same script."""
    answer: dict[str, Any] = next(SDK)
    return answer | {"batch": batch}


RULES: dict[str, Any] = {
    "until": Match("body.state", succeeded="done", failed="broken", pending=["queued", "running"]),
    "strategy": Exponential("5s", maximum="1m"),
    "result": "body.rows",
}
OVER_HTTP = JobSpec(poll=Request("GET", "https://api.example.com/batches/{key}"), **RULES)
BY_A_CALL = JobSpec(poll=check, args={"batch": "{key}"}, **RULES)


async def main(clock: FakeClock) -> None:
    """Await one and then the other. They are two jobs, so they have two keys."""
    service = ScriptedJob(ANSWERS, clock=clock)
    async with Poller("sqlite://", transport=service, clock=clock) as poller:
        for key, spec in (("b-1", OVER_HTTP), ("b-2", BY_A_CALL)):
            result = await poller.await_job(key, spec)
            print(f"{key}: {result.output} rows after {result.polls} polls, {service.polls} of them over HTTP so far")


if __name__ == "__main__":
    virtual = FakeClock()
    virtual.run(main(virtual))
