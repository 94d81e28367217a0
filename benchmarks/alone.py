"""Tarry alone: answers come at once, so what is measured is its own work."""

from __future__ import annotations

import asyncio
import gc

from benchmarks.jobs import ALONE, BUSY, Scripted, spec_of, sqlite_file
from benchmarks.meter import Reading, resident, until, while_running, window
from benchmarks.scale import Scale
from tarry import Poller


async def cpu(scale: Scale) -> Reading:
    """CPU a poll, all jobs awaited, a status map, SQLite FULL, events heard."""
    transport, spec = Scripted(), spec_of(ALONE)
    specs = {f"job-{n}": spec for n in range(scale.jobs)}
    with sqlite_file() as store:
        async with Poller(store, transport=transport, politeness=BUSY, on_event=bool) as poller:
            return await while_running(poller.await_all(specs), window(transport.polls, scale))


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
                await until(transport.polls, begun + count, scale.warm)
                weights.append(_settled())
            for task in tasks:
                task.cancel()
    return {"bytes": (weights[1] - weights[0]) / scale.awaited}


def _settled() -> int:
    gc.collect()
    return resident()
