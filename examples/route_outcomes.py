"""Submits a job, awaits it, and goes one way on success and another on failure.

The failure arrives with its type, its words and the last answer that was seen, so whoever
gets it need not ask the service again. A script plays the service, and time jumps.
"""

from __future__ import annotations

from typing import Any

from tarry import JobError, JobResult, JobSpec, Match, Poller, Request
from tarry.testing import FakeClock, ScriptedJob

PAYMENT = JobSpec(
    submit=Request("POST", "https://api.example.com/payments", json={"order": "{key}"}, idempotent=True),
    poll=Request("GET", "https://api.example.com/payments/{submit.body.jobId}"),
    until=Match("body.state", succeeded="SETTLED", failed=["DECLINED", "ERROR"], pending="PROCESSING"),
    result="body.receipt",
    reason="body.message",
)

PROCESSING: dict[str, Any] = {"state": "PROCESSING"}
SETTLED: dict[str, Any] = {"state": "SETTLED", "receipt": "r-77"}
DECLINED: dict[str, Any] = {"state": "DECLINED", "message": "card expired", "code": 54}


def ship(result: JobResult[Any]) -> None:
    """What comes next when the job did well."""
    print(f"ship {result.key}: receipt {result.output} after {result.polls} polls")


def call_customer(error: JobError) -> None:
    """What comes next when it did not."""
    print(f"call about {error.key}: {type(error).__name__}, outcome {error.outcome}")
    print(f"  detail: {error.job.reason if error.job else error}")
    print(f"  last answer: {error.last.body if error.last else None}")


async def settle(poller: Poller, order: str) -> None:
    """Submit, await, route."""
    try:
        result = await poller.await_job(order, PAYMENT)
    except JobError as error:
        call_customer(error)
    else:
        ship(result)


async def main(clock: FakeClock) -> None:
    """Both ways."""
    for order, end in (("order-1", SETTLED), ("order-2", DECLINED)):
        service = ScriptedJob([PROCESSING, PROCESSING, end], clock=clock)
        async with Poller("sqlite://", transport=service, clock=clock) as poller:
            await settle(poller, order)


if __name__ == "__main__":
    virtual = FakeClock()
    virtual.run(main(virtual))
