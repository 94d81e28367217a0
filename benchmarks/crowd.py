"""Tarry beside very many jobs that only wait in the store."""

from __future__ import annotations

import asyncio
import gc
from time import monotonic

from benchmarks.jobs import ALONE, BUSY, Scripted, fill, hours, spec_of, sqlite_file
from benchmarks.load import serving
from benchmarks.meter import Reading, resident, while_running, window
from benchmarks.restart import restarted
from benchmarks.scale import Scale
from tarry import Poller
from tarry.clock import SystemClock


async def among_few(scale: Scale) -> Reading:
    """A worker polls some jobs quickly beside few that wait: CPU a poll, memory."""
    return await _among(scale, scale.few)


async def among_many(scale: Scale) -> Reading:
    """The same beside very many."""
    return await _among(scale, scale.many)


async def _among(scale: Scale, waiting: int) -> Reading:
    transport = Scripted()
    with sqlite_file() as store:
        await fill(store, spec_of(ALONE, every="1h"), waiting, transport.clock.now() + hours(1), hours(1), "waiting")
        # Due only now: what is overdue would be spread out.
        await fill(store, spec_of(ALONE, every="200ms"), scale.jobs // 5, transport.clock.now(), 0, "busy")
        async with Poller(store, transport=transport, politeness=BUSY) as poller:
            reading = await while_running(poller.run(), window(transport.polls, scale))
            gc.collect()
            return reading | {"rss": resident(), "waiting": waiting}


async def first_poll(scale: Scale) -> Reading:
    """A start beside very many jobs that wait: until the one that is due is polled."""
    return await _restart(scale.many, 1)


async def overdue_some(scale: Scale) -> Reading:
    """A restart with many overdue among some that wait: until all are polled and written down."""
    return await _restart(scale.some, scale.overdue)


async def overdue_many(scale: Scale) -> Reading:
    """The same among very many."""
    return await _restart(scale.many, scale.overdue)


async def _restart(waiting: int, overdue: int) -> Reading:
    with sqlite_file() as store, serving() as service:
        now, spec = SystemClock().now(), spec_of(service.template, every="1h")
        await fill(store, spec, waiting, now + hours(1), hours(1), "waiting")
        await fill(store, spec, overdue, now - hours(1), hours(1) // 2, "overdue")
        begun = monotonic()
        found = await asyncio.to_thread(restarted, store, overdue)
        found["first_s"] = await service.first()
    if found["done"] != overdue:
        raise RuntimeError(f"{found['done']} of {overdue} overdue jobs were polled")
    return {name: at - begun for name, at in found.items() if name != "done"}
