"""Tarry alone: answers come at once, so what is measured is its own work."""

from __future__ import annotations

import asyncio
import gc
from statistics import quantiles
from time import perf_counter, process_time

from benchmarks.jobs import ALONE, BUSY, Scripted, fill, spec_of, sqlite_file
from benchmarks.meter import Reading, resident, until, while_running, window
from benchmarks.scale import Scale
from tarry import Poller
from tarry.core.observation import Observation
from tarry.ports import Prepared
from tarry.words import SECOND


async def cpu(scale: Scale) -> Reading:
    """CPU a poll, all jobs awaited, a status map, SQLite FULL, events heard."""
    transport, spec = Scripted(), spec_of(ALONE)
    specs = {f"job-{n}": spec for n in range(scale.jobs)}
    with sqlite_file() as store:
        async with Poller(store, transport=transport, politeness=BUSY, on_event=bool) as poller:
            return await while_running(poller.await_all(specs), window(transport.polls, scale))


class _Punctual(Scripted):
    """Notes how late (µs) each poll but a job's first comes."""

    def __init__(self, pace: int) -> None:
        super().__init__()
        self.late: list[int] = []
        self._pace = pace
        self._due: dict[str, int] = {}

    async def send(self, request: Prepared) -> Observation:
        due, seen = self._due.get(request.url), await super().send(request)
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
    with sqlite_file() as store:
        await fill(store, spec_of(ALONE, every=scale.pace), scale.paced, transport.clock.now() + lead, pace)
        async with Poller(store, transport=transport, politeness=BUSY) as poller:
            waiting = poller.await_all({f"row-{n}": None for n in range(scale.paced)})
            return await while_running(waiting, _late(transport, scale))


async def _late(transport: _Punctual, scale: Scale) -> Reading:
    """Over two polls of each job, or as many as come in the time for five."""
    await until(transport.paced, 1, scale.paced / 500 + 2 * scale.pace)
    cpu, at = process_time(), perf_counter()
    await until(transport.paced, 2 * scale.paced, 3 * scale.pace)
    cpu, took = process_time() - cpu, perf_counter() - at
    hundredths = quantiles(transport.late, n=100)
    return {"p50_ms": hundredths[49] / 1e3, "p99_ms": hundredths[98] / 1e3, "cores": cpu / took}


async def awaited(scale: Scale) -> Reading:
    """Memory (bytes) of a job that is awaited here, was polled, and is held until its next poll."""
    transport, spec = Scripted(), spec_of(ALONE, every=29)
    with sqlite_file() as store:
        async with Poller(store, transport=transport, politeness=BUSY) as poller, asyncio.TaskGroup() as waiting:
            weights, tasks = [], []
            for name, count in (("first", scale.jobs), ("job", scale.awaited)):
                begun = transport.sent
                specs = {f"{name}-{n}": spec for n in range(count)}
                tasks.append(waiting.create_task(poller.await_all(specs)))
                await until(transport.polls, begun + count, scale.warm * 3)
                weights.append(_settled())
            for task in tasks:
                task.cancel()
    return {"bytes": (weights[1] - weights[0]) / scale.awaited}


def _settled() -> int:
    gc.collect()
    return resident()
