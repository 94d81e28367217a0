"""A condition that never matches: the spec waits for SUCCEEDED, the service says DONE.

The error counts the values that were seen, so the mistake is in the message. Time jumps here: nothing
sleeps, though the wait is two minutes long.
"""

from __future__ import annotations

from tarry import Fixed, JobExhausted, JobSpec, Limits, Match, Poller, Request
from tarry.testing import FakeClock, ScriptedJob

SPEC = JobSpec(
    poll=Request("GET", "https://api.example.com/jobs/7"),
    until=Match("body.state", succeeded="SUCCEEDED", failed="FAILED"),
    strategy=Fixed("2s"),
    limits=Limits(max_polls=60),
)


async def main(clock: FakeClock) -> None:
    """Wait in vain, then read why."""
    job = ScriptedJob([{"state": "DONE"}], clock=clock)
    async with Poller("sqlite://", transport=job, clock=clock) as poller:
        try:
            await poller.await_job("report-7", SPEC)
        except JobExhausted as error:
            print(error)
        for stored in await poller.history("report-7"):
            if stored.kind == "unknown_status":
                print(f"an event said so after the first poll: {stored.kind} {stored.data['value']}")


if __name__ == "__main__":
    virtual = FakeClock()
    virtual.run(main(virtual))
