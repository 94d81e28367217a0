"""The program under the kill tests: awaits one job over HTTP and prints its result as JSON.

    waiter.py URL DATABASE SUBMIT KEY [MOMENT]

SUBMIT holds, as JSON, more arguments of the submit request.

MOMENT, such as `before-poll:2` or `after-commit:3`, is when it kills itself with
SIGKILL: before or after the n-th submit, poll, commit, or inside the n-th sleep.
"""

from __future__ import annotations

import asyncio
import json
import os
import signal
import sys
from collections import Counter
from collections.abc import Callable
from typing import Any

from tarry import Fixed, JobSpec, Limits, Match, Poller, Request
from tarry.clock import SystemClock
from tarry.core.observation import Observation
from tarry.http.transport import HttpTransport
from tarry.offload import ThreadOffload
from tarry.ports import Prepared


class Moments:
    """Counts what happens and kills the process at the chosen moment."""

    def __init__(self, moment: str) -> None:
        self._what, _, number = moment.partition(":")
        self._number = int(number or 0)
        self._counts: Counter[str] = Counter()

    def reach(self, what: str) -> None:
        """Die here, if this is the moment."""
        self._counts[what] += 1
        if what == self._what and self._counts[what] == self._number:
            die()

    def sleep_then_die(self) -> None:
        """Die some 50 ms in for each count, where the moment is `in-sleep`."""
        if self._what == "in-sleep":
            asyncio.get_running_loop().call_later(0.05 * self._number, die)


def die() -> None:
    """A real kill: no clean-up of any kind."""
    os.kill(os.getpid(), signal.SIGKILL)


class Transport(HttpTransport):
    """The real transport, with moments around each call."""

    def __init__(self, moments: Moments, clock: SystemClock) -> None:
        super().__init__(clock=clock)
        self._moments = moments

    async def send(self, request: Prepared) -> Observation:
        """Send, dying before or after where asked."""
        self._moments.reach(f"before-{request.kind}")
        seen = await super().send(request)
        self._moments.reach(f"after-{request.kind}")
        return seen


class Offload(ThreadOffload):
    """The real thread, with moments around each commit."""

    def __init__(self, moments: Moments) -> None:
        super().__init__()
        self._moments = moments

    def __call__(self, work: Callable[[], Any], /) -> Any:
        """Run the store call, dying before or after where asked."""

        def watched() -> Any:
            self._moments.reach("before-commit")
            result = work()
            self._moments.reach("after-commit")
            return result

        return super().__call__(watched)


async def main(url: str, database: str, submit: str, key: str, moment: str = "") -> None:
    """Await the job and print how it ended."""
    moments, clock = Moments(moment), SystemClock()
    spec = JobSpec(
        submit=Request("POST", f"{url}/jobs", **json.loads(submit)),
        poll=Request("GET", f"{url}/jobs/{{submit.body.jobId}}"),
        until=Match("body.state", succeeded="SUCCEEDED", failed="FAILED", pending=["QUEUED", "RUNNING"]),
        strategy=Fixed("100ms"),
        limits=Limits(min_interval="50ms", max_polls=100, total_duration="10m"),
        result="body.result",
    )
    transport = Transport(moments, clock)
    async with Poller(database, transport=transport, clock=clock, offload=Offload(moments)) as poller:
        moments.sleep_then_die()
        ended = await poller.await_job(key, spec, raises=False)
    await transport.aclose()
    print(json.dumps({"outcome": ended.outcome, "output": ended.output, "polls": ended.polls}), flush=True)


if __name__ == "__main__":
    asyncio.run(main(*sys.argv[1:]))
