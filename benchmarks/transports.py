"""What a poll costs in each HTTP library: in a bare loop, and through Tarry's transport.

Run with `python -m benchmarks.transports`. The service is a stub in a process of its own; CPU time is this process's.
One poll of Tarry's is the request made from its spec, sent, read and parsed. A thousand hosts are addresses of loopback.
"""

from __future__ import annotations

import asyncio
import subprocess
import sys
import time
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator, Sequence
from contextlib import asynccontextmanager, contextmanager
from dataclasses import dataclass
from statistics import median
from typing import Any, get_args

import aiohttp
import httpx
import httpx2

from tarry import Request
from tarry.clock import SystemClock
from tarry.http.clients import ClientName
from tarry.http.prepare import prepare
from tarry.http.secrets import Secrets
from tarry.http.transport import HttpTransport
from tarry.words import SECOND, CallKind

CALLS = 1_500
HOSTS = 1_000
RUNS = 3
_STUB = """
from tarry.testing.stub import StubService
StubService("0.0.0.0", step=1e6, new_id=lambda: "job-1").run(ready=lambda url: print(url.rpartition(":")[2], flush=True))
"""

Poll = Callable[[int], Awaitable[None]]


@dataclass(frozen=True)
class Cost:
    """Of one poll: how many a second, and CPU time in microseconds."""

    rate: float
    cpu: float


async def measured(poll: Poll, in_flight: int) -> Cost:
    """The median of three runs, after one that opens the connections."""
    await _run(poll, in_flight)
    costs = [await _run(poll, in_flight) for _ in range(RUNS)]
    return Cost(median(cost.rate for cost in costs), median(cost.cpu for cost in costs))


async def _run(poll: Poll, in_flight: int) -> Cost:
    numbers = iter(range(CALLS))

    async def some() -> None:
        for number in numbers:
            await poll(number)

    wall, cpu = time.perf_counter(), time.process_time()
    await asyncio.gather(*(some() for _ in range(in_flight)))
    return Cost(CALLS / (time.perf_counter() - wall), (time.process_time() - cpu) / CALLS * 1e6)


@asynccontextmanager
async def bare(library: Any, urls: Sequence[str]) -> AsyncIterator[Poll]:
    """The loop that one would write: get, and read the JSON."""
    if library is aiohttp:
        async with aiohttp.ClientSession() as session:

            async def poll(number: int) -> None:
                async with session.get(urls[number % len(urls)]) as answer:
                    await answer.json()

            yield poll
        return
    async with library.AsyncClient() as client:

        async def get(number: int) -> None:
            (await client.get(urls[number % len(urls)])).json()

        yield get


@asynccontextmanager
async def ours(name: ClientName, urls: Sequence[str]) -> AsyncIterator[Poll]:
    """A poll as a poller makes it, all but its schedule and its store."""
    transport, secrets = HttpTransport(name, clock=SystemClock()), Secrets(None)
    requests = [Request("GET", url) for url in urls]
    values = {
        "key": "k",
        "input": None,
        "submit": {"status": 202, "headers": {}, "body": {"jobId": "job-1"}, "url": ""},
    }

    async def poll(number: int) -> None:
        request = requests[number % len(requests)]
        prepared = prepare(request, kind=CallKind.POLL, values=values, secrets=secrets, timeout=30 * SECOND)
        seen = await transport.send(prepared)
        if seen.status != 200:
            raise RuntimeError(seen.error)

    try:
        yield poll
    finally:
        await transport.aclose()


@contextmanager
def stub() -> Iterator[int]:
    """The port of a service with one job that goes on for ever."""
    with subprocess.Popen([sys.executable, "-c", _STUB], stdout=subprocess.PIPE, text=True) as service:
        assert service.stdout is not None  # noqa: S101  # for the checker: it is a pipe
        try:
            yield int(service.stdout.readline())
        finally:
            service.terminate()


async def main() -> None:
    """Print a line each, with its ratio to the bare loop of its library and to its own with one host."""
    with stub() as port:
        hosts = [f"http://127.0.{n // 250}.{n % 250 + 1}:{port}/jobs/job-1" for n in range(HOSTS)]
        async with httpx.AsyncClient() as client:
            await client.post(f"http://127.0.0.1:{port}/jobs", json={})
        print(f"{'':28}{'in flight':>10}{'polls/s':>10}{'CPU us':>10}{'of bare/s':>12}{'of one host':>12}")
        for name, library in zip(get_args(ClientName), (httpx, httpx2, aiohttp), strict=True):
            best = Cost(0, 0)
            for in_flight in (1, 4, 16):
                async with bare(library, hosts[:1]) as poll:
                    cost = await measured(poll, in_flight)
                line(f"bare {name}", in_flight, cost)
                best = max(best, cost, key=lambda each: each.rate)
            one = Cost(0, 0)
            for label, urls, in_flight in (("one host", hosts[:1], 16), ("1,000 hosts", hosts, 64)):
                async with ours(name, urls) as poll:
                    cost = await measured(poll, in_flight)
                one = one if one.cpu else cost
                line(f"tarry {name}, {label}", in_flight, cost, cost.rate / best.rate, cost.cpu / one.cpu)


def line(name: str, in_flight: int, cost: Cost, *ratios: float) -> None:
    """One row."""
    print(
        f"{name:28}{in_flight:>10}{cost.rate:>10.0f}{cost.cpu:>10.0f}" + "".join(f"{ratio:>12.2f}" for ratio in ratios),
        flush=True,
    )


if __name__ == "__main__":
    asyncio.run(main())
