"""Tarry over HTTP at a steady pace: how punctual it is."""

from __future__ import annotations

from statistics import quantiles
from time import perf_counter, process_time

from benchmarks.jobs import BUSY, fill, spec_of, sqlite_file
from benchmarks.load import serving
from benchmarks.meter import Reading, look_as_it_comes, until, while_running
from benchmarks.scale import Scale
from tarry import Poller
from tarry.clock import SystemClock
from tarry.core.observation import Observation
from tarry.http.transport import HttpTransport
from tarry.ports import Prepared
from tarry.words import SECOND


class _Punctual(HttpTransport):
    """Notes how late (µs) each poll but a job's first comes."""

    def __init__(self, pace: int) -> None:
        self.clock = SystemClock()
        super().__init__("aiohttp", clock=self.clock)
        self.late: list[int] = []
        self._pace = pace
        self._due: dict[str, int] = {}

    async def send(self, request: Prepared) -> Observation:
        due, seen = self._due.get(request.url), await super().send(request)
        if seen.error is not None:
            raise RuntimeError(seen.error.detail)
        if due is not None:
            self.late.append(seen.started_at - due)
        self._due[request.url] = seen.finished_at + self._pace
        return seen

    async def paced(self) -> int:
        return len(self.late)


async def lateness(scale: Scale) -> Reading:
    """How late polls are (ms) where many jobs are awaited, each polled every few seconds; and the share of a core."""
    pace, lead = round(scale.pace * SECOND), scale.paced * SECOND // 500
    transport = _Punctual(pace)
    with sqlite_file() as store, serving() as service:
        await fill(
            store, spec_of(service.template(), every=scale.pace), scale.paced, transport.clock.now() + lead, pace
        )
        async with Poller(store, transport=transport, politeness=BUSY) as poller:
            waiting = poller.await_all({f"row-{n}": None for n in range(scale.paced)})
            return await while_running(waiting, _late(transport, scale))


async def lateness_as_it_comes(scale: Scale) -> Reading:
    """The same where nobody told Python's collector to look less often."""
    look_as_it_comes()
    return await lateness(scale)


async def _late(transport: _Punctual, scale: Scale) -> Reading:
    """Over two polls of each job once each has been late twice, or as many as come in the time for five."""
    await until(transport.paced, 2 * scale.paced, scale.paced / 500 + 5 * scale.pace)
    transport.late.clear()
    cpu, at = process_time(), perf_counter()
    await until(transport.paced, 2 * scale.paced, 3 * scale.pace)
    cpu, took = process_time() - cpu, perf_counter() - at
    hundredths = quantiles(transport.late, n=100)
    return {"p50_ms": hundredths[49] / 1e3, "p99_ms": hundredths[98] / 1e3, "cores": cpu / took}
